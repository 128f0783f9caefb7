//! What the order service remembers. A real one has a database with the same keys: the id of an
//! event, the item, and the pass.

use std::collections::{HashMap, HashSet};

use daegi_domain::{ItemChanged, ItemId, Outcome, TokenActivated, UserId};
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
    stock: HashMap<ItemId, (u64, u32)>,
    orders: HashMap<Uuid, Order>,
}

impl Book {
    /// A person was let in. An event that was read before changes nothing.
    pub fn let_in(&mut self, event: &TokenActivated) {
        self.activations.insert(event.event_id);
    }

    /// An item changed. An older version than the known one changes nothing.
    pub fn item_changed(&mut self, event: &ItemChanged) {
        let known = self.stock.entry(event.item_id.clone()).or_default();
        *known = (*known).max((event.version, event.remain_count));
    }

    /// Whether nothing is left, as far as it is known.
    #[must_use]
    pub fn is_sold_out(&self, item: &ItemId) -> bool {
        self.stock.get(item).is_some_and(|(_, left)| *left == 0)
    }

    /// The order that was placed with this pass.
    #[must_use]
    pub fn order(&self, pass_id: Uuid) -> Option<&Order> {
        self.orders.get(&pass_id)
    }

    /// Keeps the order placed with a pass. If there is one already, that one stays.
    pub fn keep(&mut self, pass_id: Uuid, order: Order) -> &Order {
        self.orders.entry(pass_id).or_insert(order)
    }

    /// The book in figures.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let cancelled = |order: &&Order| order.outcome == Outcome::Cancelled;
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
    fn an_older_version_does_not_bring_sold_seats_back() {
        let mut book = Book::default();
        assert!(!book.is_sold_out(&item()), "nobody said so");
        book.item_changed(&changed(8, 0));
        book.item_changed(&changed(7, 1));
        assert!(book.is_sold_out(&item()));
        book.item_changed(&changed(9, 5));
        assert!(!book.is_sold_out(&item()));
    }
}
