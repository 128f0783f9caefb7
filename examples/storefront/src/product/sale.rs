//! One sale: stock, next step and version of each change. Pure, so that tests need neither Kafka nor time.

use std::collections::HashSet;
use std::time::Duration;

use daegi_domain::{ItemChanged, ItemId, ItemName, Millis, OrderClosed, Outcome, rfc3339};

/// The plan of a sale.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The item.
    pub item: ItemId,
    /// Its display name.
    pub name: ItemName,
    /// Stock at the opening.
    pub stock: u32,
    /// Stock added after a sell-out.
    pub restock: u32,
    /// Number of restocks.
    pub restocks: u32,
    /// Delay from a sell-out to the restock.
    pub restock_after: Duration,
    /// Delay from the last sell-out to the close.
    pub linger: Duration,
    /// Maximum duration of the sale.
    pub lasts: Duration,
}

/// The phase of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not yet open.
    Planned,
    /// Stock is left.
    OnSale,
    /// No stock is left.
    SoldOut,
    /// The sale has ended.
    Closed,
}

/// A step of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Opens the sale.
    Open,
    /// Adds stock.
    Restock,
    /// Ends the sale.
    Close,
}

/// Phase and totals of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Current phase.
    pub phase: Phase,
    /// Remaining stock.
    pub stock: u32,
    /// Sold pieces.
    pub sold: u32,
    /// Number of restocks so far.
    pub restocked: u32,
}

/// A sale that follows a plan.
#[derive(Debug)]
pub struct Sale {
    plan: Plan,
    progress: Progress,
    sold_out_at: Duration,
    version: u64,
    /// Event ids of counted orders. A real service has a table with a unique column.
    counted: HashSet<String>,
}

impl Sale {
    /// A sale that has not opened.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let progress = Progress { phase: Phase::Planned, stock: 0, sold: 0, restocked: 0 };
        Self { plan, progress, sold_out_at: Duration::ZERO, version: 0, counted: HashSet::new() }
    }

    /// Phase and totals.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The next step of the plan with its time since the opening.
    #[must_use]
    pub fn next_step(&self) -> Option<(Duration, Step)> {
        let Plan { restocks, restock_after, linger, lasts, .. } = self.plan;
        let more_comes = self.progress.restocked < restocks;
        let next = match self.progress.phase {
            Phase::Planned | Phase::Closed => return None,
            Phase::OnSale => (lasts, Step::Close),
            Phase::SoldOut if more_comes => (self.sold_out_at + restock_after, Step::Restock),
            Phase::SoldOut => (self.sold_out_at + linger, Step::Close),
        };
        Some(if next.0 < lasts { next } else { (lasts, Step::Close) })
    }

    /// Applies a step of the plan.
    pub fn apply(&mut self, step: Step) {
        let progress = &mut self.progress;
        match step {
            Step::Open => (progress.phase, progress.stock) = (Phase::OnSale, self.plan.stock),
            Step::Restock => {
                progress.phase = Phase::OnSale;
                progress.restocked += 1;
                progress.stock += self.plan.restock;
            }
            Step::Close => progress.phase = Phase::Closed,
        }
    }

    /// Counts a closed order at this time since the opening. Returns whether the item changed. Cancelled orders, other
    /// items and repeated events change nothing.
    pub fn order_closed(&mut self, order: &OrderClosed, at: Duration) -> bool {
        let ours = order.item_id == self.plan.item && order.outcome == Outcome::Completed;
        if !ours || !self.counted.insert(order.event_id.clone()) {
            return false;
        }
        let progress = &mut self.progress;
        progress.sold += 1;
        progress.stock = progress.stock.saturating_sub(1);
        if progress.stock == 0 && progress.phase == Phase::OnSale {
            progress.phase = Phase::SoldOut;
            self.sold_out_at = at;
        }
        true
    }

    /// The item with a new version.
    ///
    /// The version is the Unix time in ms, or the last version plus one if that is higher, so that versions also increase
    /// after a restart without stored state. A service with a database uses a version column instead.
    pub fn item_changed(&mut self, now: Millis) -> ItemChanged {
        self.version = now.max(self.version + 1);
        ItemChanged {
            item_id: self.plan.item.clone(),
            item_name: self.plan.name.clone(),
            remain_count: self.progress.stock,
            waiting_queue_enabled: matches!(self.progress.phase, Phase::OnSale | Phase::SoldOut),
            is_waiting_queue_target_item: true,
            version: self.version,
            occurred_at: rfc3339(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daegi_domain::UserId;

    const SECOND: Duration = Duration::from_secs(1);

    fn opened(stock: u32, restock: u32) -> Sale {
        let mut sale = Sale::new(Plan {
            item: ItemId::parse("concert").unwrap(),
            name: ItemName::parse("Friday 8 pm").unwrap(),
            stock,
            restock,
            restocks: u32::from(restock > 0),
            restock_after: 5 * SECOND,
            linger: 3 * SECOND,
            lasts: 60 * SECOND,
        });
        sale.apply(Step::Open);
        sale
    }

    fn order(id: &str, item: &str, outcome: Outcome) -> OrderClosed {
        OrderClosed {
            event_id: id.to_owned(),
            item_id: ItemId::parse(item).unwrap(),
            user_id: UserId::parse("kim").unwrap(),
            token: "kim-concert-…".to_owned(),
            outcome,
            occurred_at: rfc3339(0),
        }
    }

    fn buy(sale: &mut Sale, id: &str, at: Duration) -> bool {
        sale.order_closed(&order(id, "concert", Outcome::Completed), at)
    }

    #[test]
    fn only_a_completed_order_of_this_item_lowers_the_stock_and_only_once() {
        let mut sale = opened(10, 0);
        assert!(buy(&mut sale, "1", SECOND));
        assert!(!buy(&mut sale, "1", SECOND), "Kafka delivers at least once");
        assert!(!sale.order_closed(&order("2", "concert", Outcome::Cancelled), SECOND));
        assert!(!sale.order_closed(&order("3", "other", Outcome::Completed), SECOND));
        assert_eq!((sale.progress().stock, sale.progress().sold), (9, 1));
    }

    #[test]
    fn a_sale_sells_out_is_restocked_once_sells_out_again_and_closes() {
        let mut sale = opened(1, 1);
        assert_eq!(sale.next_step(), Some((60 * SECOND, Step::Close)));
        buy(&mut sale, "1", 10 * SECOND);
        assert_eq!(sale.progress().phase, Phase::SoldOut);
        assert_eq!(sale.next_step(), Some((15 * SECOND, Step::Restock)));
        sale.apply(Step::Restock);
        assert_eq!((sale.progress().phase, sale.progress().stock), (Phase::OnSale, 1));
        buy(&mut sale, "2", 20 * SECOND);
        assert_eq!(sale.next_step(), Some((23 * SECOND, Step::Close)));
        sale.apply(Step::Close);
        assert_eq!((sale.progress().phase, sale.next_step()), (Phase::Closed, None));
    }

    #[test]
    fn a_sale_ends_in_time_whatever_was_planned() {
        let mut sale = opened(1, 1);
        buy(&mut sale, "1", 58 * SECOND);
        assert_eq!(sale.next_step(), Some((60 * SECOND, Step::Close)));
    }

    #[test]
    fn the_stock_does_not_underflow() {
        let mut sale = opened(1, 0);
        buy(&mut sale, "1", SECOND);
        assert!(buy(&mut sale, "2", SECOND));
        assert_eq!((sale.progress().stock, sale.progress().sold), (0, 2));
    }

    #[test]
    fn versions_increase_when_the_clock_does_not_and_after_a_restart() {
        let mut sale = opened(10, 0);
        let versions = [1000, 1000, 990, 1005].map(|now| sale.item_changed(now).version);
        assert_eq!(versions, [1000, 1001, 1002, 1005]);
        let restarted = opened(10, 0).item_changed(1006).version;
        assert!(restarted > 1005, "only the clock is known");
    }

    #[test]
    fn the_line_is_open_while_there_is_a_sale_sold_out_or_not() {
        let mut sale = opened(1, 0);
        let event = |sale: &mut Sale| {
            let event = sale.item_changed(0);
            (event.remain_count, event.waiting_queue_enabled)
        };
        assert_eq!(event(&mut sale), (1, true));
        buy(&mut sale, "1", SECOND);
        assert_eq!(event(&mut sale), (0, true));
        sale.apply(Step::Close);
        assert_eq!(event(&mut sale), (0, false));
    }
}
