//! Placing an order: pass check, order, and the `order.closed` event.

use std::sync::{Mutex, MutexGuard, PoisonError};

use daegi_domain::{ItemId, OrderClosed, Outcome, Ticket, rfc3339};
use daegi_guard::{Entry, Guard, Refusal};
use daegi_kafka::{Publisher, Record};
use uuid::Uuid;

use super::Setup;
use super::ledger::{Order, OrderLedger};
use crate::now_ms;

/// Namespace of order ids. Constant, so that an order keeps its id after a restart.
const ORDER_IDS: Uuid = Uuid::from_u128(0x6f72_6465_7221_4964_8e74_4964_7321_0001);

/// Places orders.
#[derive(Debug)]
pub struct Checkout {
    setup: Setup,
    guard: Guard,
    publisher: Publisher,
    ledger: Mutex<OrderLedger>,
}

/// Whether the payment can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Card {
    /// Never declined.
    Accepted,
    /// Declined in `cancelled_percent` of all cases.
    MayBeDeclined,
}

/// Whether an order is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// Placed by this request.
    Created(Order),
    /// Placed before with the same ticket.
    Existing(Order),
}

/// Errors of placing an order.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The guard rejects the pass.
    #[error(transparent)]
    Pass(#[from] Refusal),
    /// No stock level is known. A service that has just started reads it within seconds.
    #[error("this item is not on sale here, or not yet")]
    UnknownItem,
    /// The event cannot be published.
    #[error("the order cannot be recorded now")]
    Kafka(#[from] daegi_kafka::Error),
}

impl Checkout {
    pub(super) fn new(setup: Setup) -> Result<Self, super::Error> {
        let publisher = Publisher::new(&setup.kafka.brokers)?;
        let config = daegi_guard::GuardConfig::new(&setup.api);
        let browser_url = setup.pages.clone().unwrap_or_else(|| config.browser_url.clone());
        let guard = Guard::new(daegi_guard::GuardConfig { browser_url, ..config })?;
        Ok(Self { setup, guard, publisher, ledger: Mutex::default() })
    }

    /// Admissions, stock levels and orders.
    pub fn ledger(&self) -> MutexGuard<'_, OrderLedger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The guard that checks passes.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Places an order with this pass. All requests with a pass of the same ticket return the same order, because users
    /// click twice and clients retry.
    ///
    /// The order does not wait for `token.activated`: the pass is the proof, and the event may be late.
    ///
    /// # Errors
    /// If the pass is rejected or the event cannot be published. A retry is safe.
    pub async fn place(&self, item: &ItemId, pass: &str, card: Card) -> Result<Placement, Error> {
        let entry = self.guard.check(item, pass).await?;
        if !self.ledger().has_stock_level(item) {
            return Err(Error::UnknownItem);
        }
        let ticket = ticket_of(&entry);
        let (order, published) =
            self.ledger().order_of(&ticket, |ledger| self.build_order(&ticket, card, ledger));
        if published {
            return Ok(Placement::Existing(order));
        }
        // If publishing fails, the retry of the user publishes the event under the same id.
        // (With a database, store the order with its event and publish from there, as daegi's outbox does.)
        self.publisher.publish(&[self.order_closed(&entry, &order)?]).await?;
        self.ledger().mark_published(&ticket);
        tracing::debug!(order.id = %order.order_id, outcome = ?order.outcome, "order closed");
        Ok(Placement::Created(order))
    }

    /// The order id is derived from the ticket, so that it is the same after a restart.
    ///
    /// daegi admits no more users than there is stock, but receives the stock over Kafka with a delay, so the order service
    /// must check the stock itself. (With several replicas and a database: reserve a row.)
    fn build_order(&self, ticket: &Ticket, card: Card, ledger: &mut OrderLedger) -> Order {
        let Ticket { item, user, number, .. } = ticket;
        let order_id = Uuid::new_v5(&ORDER_IDS, format!("{item}/{number}/{user}").as_bytes());
        let card_declined = card == Card::MayBeDeclined
            && order_id.as_bytes()[15] % 100 < self.setup.cancelled_percent;
        let sold = !card_declined && ledger.reserve(item);
        Order {
            order_id,
            item_id: item.clone(),
            user_id: user.clone(),
            outcome: if sold { Outcome::Completed } else { Outcome::Cancelled },
        }
    }

    fn order_closed(&self, entry: &Entry, order: &Order) -> daegi_kafka::Result<Record> {
        let event = OrderClosed {
            event_id: order.order_id.to_string(),
            item_id: order.item_id.clone(),
            user_id: order.user_id.clone(),
            token: entry.token(),
            outcome: order.outcome,
            occurred_at: rfc3339(now_ms()),
        };
        Record::from_event(&event, &self.setup.kafka.topics)
    }
}

/// The ticket of an entry. It is the same for all passes of the entry; the pass id changes with daegi's ticket secret.
fn ticket_of(entry: &Entry) -> Ticket {
    let Entry { item, user, number, .. } = entry.clone();
    Ticket::new(item, user, number)
}

#[cfg(test)]
mod tests {
    use daegi_domain::{Number, UserId};

    use super::*;

    #[test]
    fn passes_of_an_old_and_a_new_ticket_secret_are_one_order() {
        let pass = |id| Entry {
            user: UserId::parse("kim").unwrap(),
            item: ItemId::parse("concert").unwrap(),
            pass_id: Uuid::from_u128(id),
            number: Number(7),
            lane: None,
            expires_at: 0,
            signature_verified: true,
        };
        assert_eq!(ticket_of(&pass(1)), ticket_of(&pass(2)));
        let next = Entry { number: Number(8), ..pass(1) };
        assert_ne!(ticket_of(&next), ticket_of(&pass(1)), "another ticket is another order");
    }
}
