//! What order services say: orders end, and slots become free.

use std::collections::HashSet;

use daegi_domain::{EndReason, Millis, OrderClosed, Ticket, TicketKeys, Topic};
use daegi_kafka::{Effect, Halt, Incoming, Missing, Poison, Standing};
use daegi_runtime::Clock;
use daegi_store::{Closing, SharedStore};
use futures_util::future::join_all;

use crate::ConsumerDeps;
use crate::error::{Refusal, missing, read};

/// How long after an order its item may be expected back from the product services' log. An item
/// that was made by hand never comes, and must not hold up the orders of others for longer.
pub(crate) const ITEM_COMES_BACK: Millis = 60_000;

/// How many orders are closed at once.
const ABREAST: usize = 64;

/// Frees the slots of people whose orders have ended.
pub struct Orders {
    store: SharedStore,
    ticket_keys: TicketKeys,
    clock: Clock,
}

/// How a person's order ended.
#[derive(Debug)]
pub struct Closed {
    ticket: Ticket,
    reason: EndReason,
    /// When that was written to the log, by the producer's clock; no later than the consumer read it,
    /// because a timestamp in the future would hold the partition until then.
    at: Millis,
}

impl Orders {
    /// Orders of people in this store.
    #[must_use]
    pub fn new(deps: &ConsumerDeps) -> Self {
        let (store, clock) = (deps.store.clone(), deps.clock.clone());
        Self { store, ticket_keys: deps.ticket_keys.clone(), clock }
    }

    fn closed(&self, message: &Incoming<'_>) -> Result<Closed, Refusal> {
        let body = message.body.ok_or(Refusal::NoBody)?;
        let event: OrderClosed = read(body)?;
        let ticket = self.ticket_keys.verify(&event.item_id, &event.token)?;
        if ticket.user != event.user_id {
            return Err(Refusal::OtherUser);
        }
        let at = message.at.min(self.clock.now_ms());
        Ok(Closed { ticket, reason: event.outcome.into(), at })
    }

    /// A ticket that has ended already stays as it ended, and one that is too old counts as ended. One of an item that the store lost would
    /// live again when the item is back, so its end waits for that.
    async fn free(&self, Closed { ticket, reason, at }: &Closed) -> Result<(), Missing> {
        let (item, number, now) = (&ticket.item, ticket.number, self.clock.now_ms());
        if self.ticket_keys.is_too_old(number, now) {
            return Ok(());
        }
        let freed = self.store.complete(item, &ticket.user, number, *reason, now).await;
        match freed.map_err(|error| missing(&error))? {
            Closing::Forgotten if now < at + ITEM_COMES_BACK => {
                Err(Missing(format!("the store has lost item {item}")))
            }
            Closing::Done | Closing::Over | Closing::Forgotten => Ok(()),
        }
    }
}

impl Effect for Orders {
    const TOPIC: Topic = Topic::OrderClosed;

    type Meaning = Closed;

    fn read(&self, message: &Incoming<'_>) -> Result<Closed, Poison> {
        Ok(self.closed(message)?)
    }

    async fn apply(&self, orders: &[Closed]) -> Result<(), Halt> {
        let mut done = 0;
        for orders in waves(orders) {
            for freed in join_all(orders.iter().map(|order| self.free(order))).await {
                freed.map_err(|missing| Halt { done, missing })?;
                done += 1;
            }
        }
        Ok(())
    }

    /// Orders end once; what they did is not theirs to bring back.
    async fn standing(&self, _: i32) -> Result<Standing, Missing> {
        Ok(Standing::Whole)
    }

    async fn begin(&self, _: i32) -> Result<(), Missing> {
        Ok(())
    }

    async fn end(&self, _: i32) -> Result<(), Missing> {
        Ok(())
    }
}

/// Cuts orders into runs in which nobody comes twice: of two ends of one ticket the first counts,
/// so they must not go side by side.
fn waves(mut orders: &[Closed]) -> Vec<&[Closed]> {
    let mut waves = Vec::new();
    while !orders.is_empty() {
        let mut tickets = HashSet::new();
        let candidates = orders.iter().take(ABREAST).map(|order| &order.ticket);
        let length = candidates.take_while(|ticket| tickets.insert(*ticket)).count();
        let (wave, rest) = orders.split_at(length);
        waves.push(wave);
        orders = rest;
    }
    waves
}

impl std::fmt::Debug for Orders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Orders").field("store", &self.store).finish_non_exhaustive()
    }
}
