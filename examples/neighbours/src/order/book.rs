//! What the order service remembers. A real one has a database with the same keys: the id of an
//! event, the item, and the ticket.

use std::collections::{HashMap, HashSet};

use daegi_domain::{ItemChanged, ItemId, Outcome, Ticket, TokenActivated, UserId};
use serde::Serialize;
use uuid::Uuid;

/// An order, as its buyer sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The order.
    pub order_id: Uuid,
    /// What was ordered.
    pub item_id: ItemId,
    /// Who ordered.
    pub user_id: UserId,
    /// How it ended.
    pub outcome: Outcome,
}

/// The book in figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many people daegi said it let in.
    pub let_in: usize,
    /// How many orders there are.
    pub orders: usize,
    /// How many of them were cancelled.
    pub cancelled: usize,
}

/// Who was let in, what is left, and which orders there are.
#[derive(Debug, Default)]
pub struct Book {
    activations: HashSet<Uuid>,
    shelves: HashMap<ItemId, Shelf>,
    /// By ticket, not by the id of a pass: a ticket's passes have another id once daegi signs with
    /// another secret, and two of them must not be two orders.
    orders: HashMap<Ticket, Entry>,
}

/// What is known of the stock of an item.
#[derive(Debug, Default)]
struct Shelf {
    version: u64,
    left: u32,
    /// Sold here, but not yet counted in `left`: the product service has yet to hear of it.
    promised: u32,
}

#[derive(Debug)]
struct Entry {
    order: Order,
    told: bool,
}

impl Book {
    /// A person was let in. An event that was read before changes nothing.
    pub fn let_in(&mut self, event: &TokenActivated) {
        self.activations.insert(event.event_id);
    }

    /// An item changed. An older version than the known one changes nothing.
    pub fn item_changed(&mut self, event: &ItemChanged) {
        let shelf = self.shelves.entry(event.item_id.clone()).or_default();
        if event.version > shelf.version {
            let counted = shelf.left.saturating_sub(event.remain_count);
            shelf.promised = shelf.promised.saturating_sub(counted);
            (shelf.version, shelf.left) = (event.version, event.remain_count);
        }
    }

    /// Whether anybody has said how many there are.
    #[must_use]
    pub fn knows(&self, item: &ItemId) -> bool {
        self.shelves.contains_key(item)
    }

    /// How many are left that nobody was promised.
    #[must_use]
    pub fn left(&self, item: &ItemId) -> Option<u32> {
        self.shelves.get(item).map(|shelf| shelf.left.saturating_sub(shelf.promised))
    }

    /// The order of this id.
    #[must_use]
    pub fn order(&self, id: Uuid) -> Option<Order> {
        let mut orders = self.orders.values().map(|entry| &entry.order);
        orders.find(|order| order.order_id == id).cloned()
    }

    /// Promises one to a buyer, unless all that is left is promised to others.
    pub fn promise(&mut self, item: &ItemId) -> bool {
        let Some(shelf) = self.shelves.get_mut(item) else { return false };
        let free = shelf.promised < shelf.left;
        shelf.promised += u32::from(free);
        free
    }

    /// The order of a ticket, and whether it has been told. `new` makes one if there is none yet.
    pub fn order_of(
        &mut self,
        ticket: &Ticket,
        new: impl FnOnce(&mut Self) -> Order,
    ) -> (Order, bool) {
        if let Some(entry) = self.orders.get(ticket) {
            return (entry.order.clone(), entry.told);
        }
        let order = new(self);
        self.orders.insert(ticket.clone(), Entry { order: order.clone(), told: false });
        (order, false)
    }

    /// Everybody knows of this order.
    pub fn told(&mut self, ticket: &Ticket) {
        if let Some(entry) = self.orders.get_mut(ticket) {
            entry.told = true;
        }
    }

    /// The book in figures.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let cancelled = |entry: &&Entry| entry.order.outcome == Outcome::Cancelled;
        Counts {
            let_in: self.activations.len(),
            orders: self.orders.len(),
            cancelled: self.orders.values().filter(cancelled).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daegi_domain::{ItemName, Number, rfc3339};

    fn item() -> ItemId {
        ItemId::parse("concert").unwrap()
    }

    fn changed(version: u64, left: u32) -> ItemChanged {
        ItemChanged {
            item_id: item(),
            item_name: ItemName::parse("Friday 8 pm").unwrap(),
            remain_count: left,
            waiting_queue_enabled: true,
            is_waiting_queue_target_item: true,
            version,
            occurred_at: rfc3339(0),
        }
    }

    #[test]
    fn a_person_who_is_announced_twice_was_let_in_once() {
        let mut book = Book::default();
        let event = |id| TokenActivated {
            event_id: Uuid::from_u128(id),
            item_id: item(),
            user_id: UserId::parse("kim").unwrap(),
            token: "kim-concert-…".to_owned(),
            number: Number(7),
            activated_at: rfc3339(0),
            expires_at: rfc3339(1),
        };
        for id in [1, 2, 1] {
            book.let_in(&event(id));
        }
        assert_eq!(book.counts().let_in, 2);
    }

    #[test]
    fn no_more_is_promised_than_is_left_however_late_the_product_service_counts() {
        let mut book = Book::default();
        assert!(!book.knows(&item()) && !book.promise(&item()), "nobody said how many");
        book.item_changed(&changed(7, 2));
        assert!(book.promise(&item()) && book.promise(&item()));
        assert!(!book.promise(&item()), "two are left, and promised");
        book.item_changed(&changed(8, 1));
        assert!(!book.promise(&item()), "one is left, and promised");
        book.item_changed(&changed(9, 0));
        book.item_changed(&changed(8, 1));
        assert!(!book.promise(&item()), "an older version does not bring seats back");
        book.item_changed(&changed(10, 1));
        assert!(book.promise(&item()), "restocked");
    }

    #[test]
    fn a_ticket_has_one_order_which_is_told_once() {
        let mut book = Book::default();
        let user = UserId::parse("kim").unwrap();
        let order = |outcome| {
            let (order_id, user_id) = (Uuid::nil(), user.clone());
            Order { order_id, item_id: item(), user_id, outcome }
        };
        let ticket = Ticket { item: item(), user: user.clone(), number: Number(5) };
        let first = book.order_of(&ticket, |_| order(Outcome::Completed));
        assert_eq!(first, (order(Outcome::Completed), false));
        let again = book.order_of(&ticket, |_| order(Outcome::Cancelled));
        assert_eq!(again, first, "and yet to be told");
        book.told(&ticket);
        let (again, told) = book.order_of(&ticket, |_| order(Outcome::Cancelled));
        assert_eq!((again, told), (first.0, true));
        assert_eq!(book.counts(), Counts { let_in: 0, orders: 1, cancelled: 0 });
    }
}
