//! Simulated visitors: a rush at the opening and then one by one. They poll as `pollAfterMs` says and buy when they are
//! admitted. Some leave, some disappear.

mod visitor;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use daegi_domain::{ItemId, LineState};
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{RETRY_INTERVAL, http_client};
use visitor::{Behaviour, VisitOutcome, Visitor};

/// How many visitors come, and where they go.
#[derive(Debug, Clone)]
pub struct VisitorLoad {
    /// Public URL of daegi.
    pub api: String,
    /// URL of the order service.
    pub shop: String,
    /// The item.
    pub item: ItemId,
    /// Visitors in the rush.
    pub size: u32,
    /// Duration of the rush.
    pub rush: Duration,
    /// Interval between two visitors after the rush.
    pub trickle: Duration,
    /// After the rush, visitors join only if the line is shorter.
    pub max_line: u64,
    /// Percentage of visitors that leave the line while they wait.
    pub leave_percent: u8,
    /// Percentage of visitors that stop polling after the join.
    pub disappear_percent: u8,
    /// Time in ms from the admission to the order.
    pub thinking_ms: RangeInclusive<u64>,
}

/// Counts the outcomes of visits.
#[derive(Debug, Default)]
pub struct OutcomeCounts {
    counts: [AtomicU32; VisitOutcome::COUNT],
}

/// Reads the public state of a line.
#[derive(Debug, Clone)]
pub struct LineClient {
    http: reqwest::Client,
    line_url: String,
}

/// The public state of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Whether the line admits users.
    pub line_state: LineState,
    /// Users waiting.
    pub waiting_count: u64,
    /// Current entries.
    pub entered_count: u64,
}

impl VisitorLoad {
    /// 120 visitors in the rush, 5 % of which leave and 5 % disappear, then one every 150 ms.
    #[must_use]
    pub fn new(api: &str, shop: &str, item: ItemId) -> Self {
        Self {
            api: api.to_owned(),
            shop: shop.to_owned(),
            item,
            size: 120,
            rush: Duration::from_secs(15),
            trickle: Duration::from_millis(150),
            max_line: 120,
            leave_percent: 5,
            disappear_percent: 5,
            thinking_ms: 1500..=4000,
        }
    }

    /// Runs from the opening of the line until `stop` is cancelled.
    pub async fn run(self, outcomes: Arc<OutcomeCounts>, stop: CancellationToken) {
        // Dropping the set aborts all visits.
        let mut visits = JoinSet::new();
        stop.run_until_cancelled(self.start_visits(&mut visits, &outcomes)).await;
    }

    async fn start_visits(self, visits: &mut JoinSet<()>, outcomes: &Arc<OutcomeCounts>) {
        let load = Arc::new(self);
        load.line_client().wait_until_open().await;
        let http = http_client();
        // User ids must differ between two runs on one store.
        let run = fastrand::u16(..);
        let line_client = load.line_client();
        for count in 1.. {
            if count > load.size {
                line_client.wait_until_shorter(load.max_line).await;
            }
            let user = format!("visitor-{run:04x}-{count}");
            let visitor = Visitor::new(user, load.behaviour(), Arc::clone(&load), http.clone());
            let outcomes = Arc::clone(outcomes);
            visits.spawn(async move { outcomes.record(visitor.visit().await) });
            while visits.try_join_next().is_some() {}
            tokio::time::sleep(load.until_next(count)).await;
        }
    }

    /// A client for the line of this load.
    #[must_use]
    pub fn line_client(&self) -> LineClient {
        LineClient { http: http_client(), line_url: self.line_url() }
    }

    fn line_url(&self) -> String {
        format!("{}/api/v1/item/{}/waiting-queue", self.api, self.item)
    }

    fn until_next(&self, count: u32) -> Duration {
        if count < self.size { self.rush / self.size } else { self.trickle }
    }

    fn behaviour(&self) -> Behaviour {
        let percent = fastrand::u8(..100);
        if percent < self.leave_percent {
            Behaviour::Leave
        } else if percent - self.leave_percent < self.disappear_percent {
            Behaviour::Disappear
        } else {
            Behaviour::Wait
        }
    }
}

impl LineClient {
    /// The public state of the line.
    ///
    /// # Errors
    /// If daegi is unavailable or the item does not exist.
    pub async fn line(&self) -> reqwest::Result<Line> {
        self.http.get(&self.line_url).send().await?.error_for_status()?.json().await
    }

    async fn wait_until_shorter(&self, max_line: u64) {
        while !self.line().await.is_ok_and(|line| line.waiting_count < max_line) {
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    async fn wait_until_open(&self) {
        let open = |line: Line| line.line_state == LineState::Open;
        while !self.line().await.is_ok_and(open) {
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}

impl OutcomeCounts {
    fn record(&self, outcome: VisitOutcome) {
        self.counts[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self, outcome: VisitOutcome) -> u32 {
        self.counts[outcome as usize].load(Ordering::Relaxed)
    }

    /// Visitors whose join was refused.
    #[must_use]
    pub fn turned_away(&self) -> u32 {
        self.count(VisitOutcome::TurnedAway)
    }

    /// Visitors that left the line or disappeared.
    #[must_use]
    pub fn given_up(&self) -> u32 {
        self.count(VisitOutcome::Left) + self.count(VisitOutcome::Disappeared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_come_in_a_rush_and_then_one_by_one() {
        let load = VisitorLoad::new("", "", ItemId::parse("concert").unwrap());
        let rush: Duration = (1..load.size).map(|count| load.until_next(count)).sum();
        assert!(rush <= load.rush && rush + load.rush / 100 > load.rush, "{rush:?}");
        assert_eq!(load.until_next(load.size), load.trickle);
    }

    #[test]
    fn percentages_decide_the_behaviour() {
        let item = ItemId::parse("concert").unwrap();
        let load = VisitorLoad { leave_percent: 100, ..VisitorLoad::new("", "", item) };
        assert_eq!(load.behaviour(), Behaviour::Leave);
        let load = VisitorLoad { leave_percent: 0, disappear_percent: 100, ..load };
        assert_eq!(load.behaviour(), Behaviour::Disappear);
        let load = VisitorLoad { disappear_percent: 0, ..load };
        assert_eq!(load.behaviour(), Behaviour::Wait);
    }
}
