//! One sale: how many are left, what happens next, and the version of each change. Pure, so that
//! it can be read and tested without Kafka and without waiting.

use std::collections::HashSet;
use std::time::Duration;

use daegi_domain::{ItemChanged, ItemId, ItemName, Millis, OrderClosed, Outcome, rfc3339};

/// What is meant to happen.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is sold.
    pub item: ItemId,
    /// Its name, for people.
    pub name: ItemName,
    /// How many there are at the beginning.
    pub stock: u32,
    /// How many more come once it is sold out.
    pub restock: u32,
    /// How often that happens.
    pub restocks: u32,
    /// How long after that.
    pub restock_after: Duration,
    /// How long the line stays open when the last one is gone.
    pub linger: Duration,
    /// The end of the sale, sold out or not.
    pub lasts: Duration,
}

/// Where a sale stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not yet open.
    Planned,
    /// People can buy.
    OnSale,
    /// Nothing is left for now.
    SoldOut,
    /// Over.
    Closed,
}

/// What the product service does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The sale begins.
    Open,
    /// More of it comes.
    Restock,
    /// The sale ends.
    Close,
}

/// A sale in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Where it stands.
    pub phase: Phase,
    /// How many are left.
    pub stock: u32,
    /// How many were sold.
    pub sold: u32,
    /// How often more has come already.
    pub restocked: u32,
}

/// A sale that follows a plan.
#[derive(Debug)]
pub struct Sale {
    plan: Plan,
    progress: Progress,
    sold_out_at: Duration,
    version: u64,
    /// The ids of orders that were counted. A real service has a table with a unique column.
    counted: HashSet<String>,
}

impl Sale {
    /// A sale that has not begun.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let progress = Progress { phase: Phase::Planned, stock: 0, sold: 0, restocked: 0 };
        Self { plan, progress, sold_out_at: Duration::ZERO, version: 0, counted: HashSet::new() }
    }

    /// Where it stands.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// What happens next by itself, and how long after the opening.
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

    /// Takes a step of the plan.
    pub fn take(&mut self, step: Step) {
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

    /// An order ended, this long after the opening. Says whether that changed the item; it does
    /// not for a cancelled order, for another item, and for one that was counted before: Kafka
    /// delivers at least once.
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

    /// The item as it is now, under a version that was never used before.
    ///
    /// Versions follow the clock (unix milliseconds), and grow by one where the clock does not.
    /// So they go on growing after a restart although nothing was kept. Whoever has a database
    /// keeps a version column in the row of the item instead, and does not depend on a clock.
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
        sale.take(Step::Open);
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
        sale.take(Step::Restock);
        assert_eq!((sale.progress().phase, sale.progress().stock), (Phase::OnSale, 1));
        buy(&mut sale, "2", 20 * SECOND);
        assert_eq!(sale.next_step(), Some((23 * SECOND, Step::Close)));
        sale.take(Step::Close);
        assert_eq!((sale.progress().phase, sale.next_step()), (Phase::Closed, None));
    }

    #[test]
    fn a_sale_ends_in_time_whatever_was_planned() {
        let mut sale = opened(1, 1);
        buy(&mut sale, "1", 58 * SECOND);
        assert_eq!(sale.next_step(), Some((60 * SECOND, Step::Close)));
    }

    #[test]
    fn one_too_many_does_not_turn_the_stock_over() {
        let mut sale = opened(1, 0);
        buy(&mut sale, "1", SECOND);
        assert!(buy(&mut sale, "2", SECOND));
        assert_eq!((sale.progress().stock, sale.progress().sold), (0, 2));
    }

    #[test]
    fn versions_only_grow_also_when_the_clock_does_not_and_after_a_restart() {
        let mut sale = opened(10, 0);
        let versions = [1000, 1000, 990, 1005].map(|now| sale.item_changed(now).version);
        assert_eq!(versions, [1000, 1001, 1002, 1005]);
        let restarted = opened(10, 0).item_changed(1006).version;
        assert!(restarted > 1005, "nothing was kept but the clock");
    }

    #[test]
    fn the_line_is_open_while_there_is_a_sale_sold_out_or_not() {
        let mut sale = opened(1, 0);
        let said = |sale: &mut Sale| {
            let event = sale.item_changed(0);
            (event.remain_count, event.waiting_queue_enabled)
        };
        assert_eq!(said(&mut sale), (1, true));
        buy(&mut sale, "1", SECOND);
        assert_eq!(said(&mut sale), (0, true));
        sale.take(Step::Close);
        assert_eq!(said(&mut sale), (0, false));
    }
}
