//! The state of the order service. A real service keeps it in a database with the same keys: event id, item, ticket.

use std::collections::{HashMap, HashSet};

use daegi_domain::{ItemChanged, ItemId, Outcome, Ticket, TokenActivated, UserId};
use serde::Serialize;
use uuid::Uuid;

/// An order as the API returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// Id.
    pub order_id: Uuid,
    /// Item.
    pub item_id: ItemId,
    /// Buyer.
    pub user_id: UserId,
    /// Completed or cancelled.
    pub outcome: Outcome,
}

/// Totals of the ledger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Admissions.
    pub admitted: usize,
    /// Orders.
    pub orders: usize,
    /// Cancelled orders.
    pub cancelled: usize,
}

/// Admissions, stock levels and orders.
#[derive(Debug, Default)]
pub struct OrderLedger {
    activations: HashSet<Uuid>,
    stock_levels: HashMap<ItemId, StockLevel>,
    /// By ticket, not by pass id: passes of one ticket get another id after a rotation of daegi's secret, and must not
    /// become two orders.
    orders: HashMap<Ticket, Entry>,
}

/// The stock of one item.
#[derive(Debug, Default)]
struct StockLevel {
    version: u64,
    left: u32,
    /// Sold here but not yet subtracted in `left` by the product service.
    reserved: u32,
}

#[derive(Debug)]
struct Entry {
    order: Order,
    published: bool,
}

impl OrderLedger {
    /// Records an admission. Idempotent by event id.
    pub fn record_admission(&mut self, event: &TokenActivated) {
        self.activations.insert(event.event_id);
    }

    /// Records a stock level. Ignores older versions.
    pub fn item_changed(&mut self, event: &ItemChanged) {
        let level = self.stock_levels.entry(event.item_id.clone()).or_default();
        if event.version > level.version {
            let counted = level.left.saturating_sub(event.remain_count);
            level.reserved = level.reserved.saturating_sub(counted);
            (level.version, level.left) = (event.version, event.remain_count);
        }
    }

    /// Whether a stock level is known.
    #[must_use]
    pub fn has_stock_level(&self, item: &ItemId) -> bool {
        self.stock_levels.contains_key(item)
    }

    /// Whether the stock of at least one item is known.
    #[must_use]
    pub fn has_stock_levels(&self) -> bool {
        !self.stock_levels.is_empty()
    }

    /// The unreserved stock; `None` if no stock level is known.
    #[must_use]
    pub fn left(&self, item: &ItemId) -> Option<u32> {
        self.stock_levels.get(item).map(|level| level.left.saturating_sub(level.reserved))
    }

    /// The order with this id.
    #[must_use]
    pub fn order(&self, id: Uuid) -> Option<Order> {
        let mut orders = self.orders.values().map(|entry| &entry.order);
        orders.find(|order| order.order_id == id).cloned()
    }

    /// Reserves one piece. Returns `false` if the remaining stock is reserved.
    pub fn reserve(&mut self, item: &ItemId) -> bool {
        let Some(level) = self.stock_levels.get_mut(item) else { return false };
        let free = level.reserved < level.left;
        level.reserved += u32::from(free);
        free
    }

    /// The order of a ticket, created by `new` if there is none, and whether its event was published.
    pub fn order_of(
        &mut self,
        ticket: &Ticket,
        new: impl FnOnce(&mut Self) -> Order,
    ) -> (Order, bool) {
        if let Some(entry) = self.orders.get(ticket) {
            return (entry.order.clone(), entry.published);
        }
        let order = new(self);
        self.orders.insert(ticket.clone(), Entry { order: order.clone(), published: false });
        (order, false)
    }

    /// Marks the event of the order as published.
    pub fn mark_published(&mut self, ticket: &Ticket) {
        if let Some(entry) = self.orders.get_mut(ticket) {
            entry.published = true;
        }
    }

    /// Totals of the ledger.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let cancelled = |entry: &&Entry| entry.order.outcome == Outcome::Cancelled;
        Counts {
            admitted: self.activations.len(),
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
    fn a_repeated_admission_counts_once() {
        let mut ledger = OrderLedger::default();
        let event = |id| TokenActivated {
            event_id: Uuid::from_u128(id),
            item_id: item(),
            user_id: UserId::parse("kim").unwrap(),
            token: "kim-concert-…".to_owned(),
            number: Number(7),
            lane: None,
            activated_at: rfc3339(0),
            expires_at: rfc3339(1),
        };
        for id in [1, 2, 1] {
            ledger.record_admission(&event(id));
        }
        assert_eq!(ledger.counts().admitted, 2);
    }

    #[test]
    fn reservations_never_exceed_the_stock_while_the_product_service_is_late() {
        let mut ledger = OrderLedger::default();
        assert!(!ledger.has_stock_level(&item()) && !ledger.reserve(&item()), "no stock level");
        ledger.item_changed(&changed(7, 2));
        assert!(ledger.reserve(&item()) && ledger.reserve(&item()));
        assert!(!ledger.reserve(&item()), "both are reserved");
        ledger.item_changed(&changed(8, 1));
        assert!(!ledger.reserve(&item()), "it is reserved");
        ledger.item_changed(&changed(9, 0));
        ledger.item_changed(&changed(8, 1));
        assert!(!ledger.reserve(&item()), "an older version changes nothing");
        ledger.item_changed(&changed(10, 1));
        assert!(ledger.reserve(&item()), "restocked");
    }

    #[test]
    fn a_ticket_has_one_order_which_is_published_once() {
        let mut ledger = OrderLedger::default();
        let user = UserId::parse("kim").unwrap();
        let order = |outcome| {
            let (order_id, user_id) = (Uuid::nil(), user.clone());
            Order { order_id, item_id: item(), user_id, outcome }
        };
        let ticket = Ticket::new(item(), user.clone(), Number(5));
        let first = ledger.order_of(&ticket, |_| order(Outcome::Completed));
        assert_eq!(first, (order(Outcome::Completed), false));
        let again = ledger.order_of(&ticket, |_| order(Outcome::Cancelled));
        assert_eq!(again, first, "not yet published");
        ledger.mark_published(&ticket);
        let (again, published) = ledger.order_of(&ticket, |_| order(Outcome::Cancelled));
        assert_eq!((again, published), (first.0, true));
        assert_eq!(ledger.counts(), Counts { admitted: 0, orders: 1, cancelled: 0 });
    }
}
