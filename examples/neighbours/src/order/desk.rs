//! Placing an order: the pass, the order, and the event that says how it ended.

use std::sync::{Mutex, MutexGuard, PoisonError};

use daegi_domain::{ItemId, OrderClosed, Outcome, Ticket, rfc3339};
use daegi_guard::{Entry, Guard, Refusal};
use daegi_kafka::{Publisher, Record};
use uuid::Uuid;

use super::Setup;
use super::book::{Book, Order};
use crate::now_ms;

/// The namespace of order ids. Fixed: an order must keep its id after a restart.
const ORDER_IDS: Uuid = Uuid::from_u128(0x6f72_6465_7221_4964_8e74_4964_7321_0001);

/// Where orders are placed.
#[derive(Debug)]
pub struct Desk {
    setup: Setup,
    guard: Guard,
    publisher: Publisher,
    book: Mutex<Book>,
}

/// How somebody pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Card {
    /// Whatever happens.
    Good,
    /// Some of these are refused, as many as the setup says.
    Doubtful,
}

/// Whether an order is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// It was placed now.
    New(Order),
    /// It was placed with the same ticket before.
    Before(Order),
}

/// Why there is no order.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The pass does not count.
    #[error(transparent)]
    Pass(#[from] Refusal),
    /// How many there are is not known. A service that has just started hears of it in a moment.
    #[error("this item is not on sale here, or not yet")]
    UnknownItem,
    /// Nobody would hear of the order.
    #[error("the order cannot be recorded now")]
    Kafka(#[from] daegi_kafka::Error),
}

impl Desk {
    pub(super) fn new(setup: Setup) -> Result<Self, super::Error> {
        let publisher = Publisher::new(&setup.kafka.brokers)?;
        let room = daegi_guard::Setup::of(&setup.api);
        let pages = setup.pages.clone().unwrap_or_else(|| room.pages.clone());
        let guard = Guard::new(daegi_guard::Setup { pages, ..room })?;
        Ok(Self { setup, guard, publisher, book: Mutex::default() })
    }

    /// What is remembered.
    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who checks passes.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Places an order for whoever presents this pass. The same ticket is the same order, however
    /// often a pass of it is presented: people click twice, and networks repeat.
    ///
    /// Whether the person's `token.activated` has arrived does not matter. The pass is the proof;
    /// the event may be late, and a person must not wait for our Kafka.
    ///
    /// # Errors
    /// If the pass does not count, or the order could not be published. Trying again is safe.
    pub async fn place(&self, item: &ItemId, pass: &str, card: Card) -> Result<Placed, Error> {
        let entry = self.guard.check(item, pass).await?;
        if !self.book().knows(item) {
            return Err(Error::UnknownItem);
        }
        let ticket = ticket_of(&entry);
        let (order, told) = self.book().order_of(&ticket, |book| self.decide(&ticket, card, book));
        if told {
            return Ok(Placed::Before(order));
        }
        // An order that could not be told is told when the person tries again, under the same id.
        // (With a database: kept together with its event, and told from there until it is
        // confirmed, as daegi's own outbox does.)
        self.publisher.publish(&[self.order_closed(&entry, &order)?]).await?;
        self.book().told(&ticket);
        tracing::debug!(order.id = %order.order_id, outcome = ?order.outcome, "order closed");
        Ok(Placed::New(order))
    }

    /// The id follows from the ticket, so that it is the same after a restart, too.
    ///
    /// The waiting room lets in no more people than there is stock, but it hears of the stock
    /// over Kafka, a moment late. Whoever sells must count for themselves. (With several replicas
    /// and a database: reserve a row.)
    fn decide(&self, ticket: &Ticket, card: Card, book: &mut Book) -> Order {
        let Ticket { item, user, number } = ticket;
        let order_id = Uuid::new_v5(&ORDER_IDS, format!("{item}/{number}/{user}").as_bytes());
        let card_refused =
            card == Card::Doubtful && order_id.as_bytes()[15] % 100 < self.setup.cancelled_percent;
        let sold = !card_refused && book.promise(item);
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
        Record::event(&event, &self.setup.kafka.topics)
    }
}

/// What all passes of an entry have in common. Their id is not: it changes with daegi's ticket
/// secret.
fn ticket_of(entry: &Entry) -> Ticket {
    let Entry { item, user, number, .. } = entry.clone();
    Ticket { item, user, number }
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
            expires_at: 0,
            genuine: true,
        };
        assert_eq!(ticket_of(&pass(1)), ticket_of(&pass(2)));
        let next = Entry { number: Number(8), ..pass(1) };
        assert_ne!(ticket_of(&next), ticket_of(&pass(1)), "another place is another order");
    }
}
