//! Events of order services: a closed order ends an entry.

use std::collections::HashSet;
use std::sync::Arc;

use daegi_domain::{EndReason, Millis, OrderClosed, Ticket, TicketKeys, Topic};
use daegi_kafka::{
    InboundMessage, MessageHandler, PartialFailure, Poison, ReplayProgress, RetryLater,
};
use daegi_runtime::Clock;
use daegi_store::{EndOutcome, TicketStore};
use futures_util::future::join_all;

use crate::ConsumerDeps;
use crate::error::{InvalidMessage, decode, retry_later};

/// How long an event of an unknown item is retried, because a replay may restore the item after a data
/// loss. Without a limit, the events of an item that no topic has would hold the topic partition forever.
pub(crate) const ITEM_RECOVERY_WINDOW_MS: Millis = 60_000;

/// Orders that are applied concurrently.
const MAX_CONCURRENT: usize = 64;

/// Ends the entries of closed orders.
pub struct OrderHandler {
    store: Arc<dyn TicketStore>,
    ticket_keys: TicketKeys,
    clock: Clock,
}

/// A closed order.
#[derive(Debug)]
pub struct ClosedOrder {
    ticket: Ticket,
    reason: EndReason,
    /// Timestamp of the record by the producer's clock, at most the time at which it was read,
    /// because a timestamp in the future would extend the time for which the partition is held.
    at: Millis,
}

impl OrderHandler {
    /// A handler of this store.
    #[must_use]
    pub fn new(deps: &ConsumerDeps) -> Self {
        let (ticket_keys, clock) = (deps.ticket_keys.clone(), deps.clock.clone());
        Self { store: deps.store.clone(), ticket_keys, clock }
    }

    fn closed(&self, message: &InboundMessage<'_>) -> Result<ClosedOrder, InvalidMessage> {
        let body = message.body.ok_or(InvalidMessage::NoBody)?;
        let event: OrderClosed = decode(body)?;
        let ticket = self.ticket_keys.verify(&event.item_id, &event.token)?;
        if ticket.user != event.user_id {
            return Err(InvalidMessage::OtherUser);
        }
        let at = message.at.min(self.clock.now_ms());
        Ok(ClosedOrder { ticket, reason: event.outcome.into(), at })
    }

    /// Ends the entry of an order. A ticket that has ended keeps its end reason, and one that is
    /// too old counts as ended. The end of a ticket of an unknown item is retried for
    /// [`ITEM_RECOVERY_WINDOW_MS`], because its number can be reclaimed after the item is restored.
    async fn end_entry(
        &self,
        ClosedOrder { ticket, reason, at }: &ClosedOrder,
    ) -> Result<(), RetryLater> {
        let now = self.clock.now_ms();
        if self.ticket_keys.is_too_old(ticket.number, now) {
            return Ok(());
        }
        let ended = self.store.complete(ticket, *reason, now).await;
        match ended.map_err(|error| retry_later(&error))? {
            EndOutcome::ItemUnknown if now < at + ITEM_RECOVERY_WINDOW_MS => {
                Err(RetryLater(format!("the store has lost item {}", ticket.item)))
            }
            EndOutcome::Ended | EndOutcome::AlreadyEnded | EndOutcome::ItemUnknown => Ok(()),
        }
    }
}

impl MessageHandler for OrderHandler {
    const TOPIC: Topic = Topic::OrderClosed;

    type Command = ClosedOrder;

    fn decode(&self, message: &InboundMessage<'_>) -> Result<ClosedOrder, Poison> {
        Ok(self.closed(message)?)
    }

    async fn apply(&self, orders: &[ClosedOrder]) -> Result<(), PartialFailure> {
        let mut applied = 0;
        for orders in without_duplicates(orders) {
            for ended in join_all(orders.iter().map(|order| self.end_entry(order))).await {
                ended.map_err(|cause| PartialFailure { applied, cause })?;
                applied += 1;
            }
        }
        Ok(())
    }

    /// Orders are not replayed, because an entry ends only once.
    async fn replay_progress(&self, _: i32) -> Result<ReplayProgress, RetryLater> {
        Ok(ReplayProgress::Complete)
    }

    async fn begin_replay(&self, _: i32) -> Result<(), RetryLater> {
        Ok(())
    }

    async fn complete_replay(&self, _: i32) -> Result<(), RetryLater> {
        Ok(())
    }
}

/// Splits orders into runs without a repeated ticket: of two ends of one ticket the first applies,
/// so they must not run concurrently.
fn without_duplicates(mut orders: &[ClosedOrder]) -> Vec<&[ClosedOrder]> {
    let mut runs = Vec::new();
    while !orders.is_empty() {
        let mut tickets = HashSet::new();
        let candidates = orders.iter().take(MAX_CONCURRENT).map(|order| &order.ticket);
        let length = candidates.take_while(|ticket| tickets.insert(*ticket)).count();
        let (run, rest) = orders.split_at(length);
        runs.push(run);
        orders = rest;
    }
    runs
}

impl std::fmt::Debug for OrderHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrderHandler").field("store", &self.store).finish_non_exhaustive()
    }
}
