//! People. They come in a rush and then one by one, wait as long as they are told, and buy when
//! it is their turn. Some change their mind, some never come back.

mod visitor;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use daegi_domain::{ItemId, LineState};
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{PAUSE, http_client};
use visitor::{Ending, Habit, Visitor};

/// Who comes, and where they go.
#[derive(Debug, Clone)]
pub struct Crowd {
    /// daegi's public address.
    pub api: String,
    /// The address of the order service.
    pub shop: String,
    /// What they all want.
    pub item: ItemId,
    /// How many come in the rush.
    pub size: u32,
    /// How long the rush takes.
    pub rush: Duration,
    /// The time between two people after that.
    pub trickle: Duration,
    /// Who comes after the rush and finds so many in the line goes home.
    pub longest: u64,
    /// How many of a hundred leave the line while they wait.
    pub leave_percent: u8,
    /// How many of a hundred close the page and are never seen again.
    pub vanish_percent: u8,
    /// How many milliseconds somebody takes to buy once they are inside.
    pub thinking_ms: RangeInclusive<u64>,
}

/// What became of people so far.
#[derive(Debug, Default)]
pub struct Tally {
    ends: [AtomicU32; Ending::COUNT],
}

/// Looks at a line without joining it.
#[derive(Debug, Clone)]
pub struct Onlooker {
    http: reqwest::Client,
    line_url: String,
}

/// A line, as everybody may see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Whether it moves.
    pub line_state: LineState,
    /// How many wait.
    pub waiting_count: u64,
    /// How many are inside.
    pub entered_count: u64,
}

impl Crowd {
    /// A crowd of 120 for this item, a few of them unreliable, and one after the other later on.
    #[must_use]
    pub fn new(api: &str, shop: &str, item: ItemId) -> Self {
        Self {
            api: api.to_owned(),
            shop: shop.to_owned(),
            item,
            size: 120,
            rush: Duration::from_secs(15),
            trickle: Duration::from_millis(150),
            longest: 120,
            leave_percent: 5,
            vanish_percent: 5,
            thinking_ms: 1500..=4000,
        }
    }

    /// Comes as soon as the line is open, and goes home when told to stop.
    pub async fn run(self, tally: Arc<Tally>, stop: CancellationToken) {
        // Dropped at the end, and everybody in it goes with it.
        let mut people = JoinSet::new();
        stop.run_until_cancelled(self.come(&mut people, &tally)).await;
    }

    async fn come(self, people: &mut JoinSet<()>, tally: &Arc<Tally>) {
        let crowd = Arc::new(self);
        crowd.onlooker().wait_for_the_opening().await;
        let http = http_client();
        // So that people of two runs on one store are not taken for each other.
        let run = fastrand::u16(..);
        let onlooker = crowd.onlooker();
        for count in 1.. {
            if count > crowd.size {
                onlooker.wait_for_a_line_below(crowd.longest).await;
            }
            let user = format!("visitor-{run:04x}-{count}");
            let visitor = Visitor::new(user, crowd.habit(), Arc::clone(&crowd), http.clone());
            let tally = Arc::clone(tally);
            people.spawn(async move { tally.note(visitor.visit().await) });
            while people.try_join_next().is_some() {}
            tokio::time::sleep(crowd.until_next(count)).await;
        }
    }

    /// Somebody who looks at the same line.
    #[must_use]
    pub fn onlooker(&self) -> Onlooker {
        Onlooker { http: http_client(), line_url: self.line_url() }
    }

    fn line_url(&self) -> String {
        format!("{}/api/v1/item/{}/waiting-queue", self.api, self.item)
    }

    fn until_next(&self, count: u32) -> Duration {
        if count < self.size { self.rush / self.size } else { self.trickle }
    }

    fn habit(&self) -> Habit {
        let chance = fastrand::u8(..100);
        if chance < self.leave_percent {
            Habit::Leaves
        } else if chance - self.leave_percent < self.vanish_percent {
            Habit::Vanishes
        } else {
            Habit::Stays
        }
    }
}

impl Onlooker {
    /// What everybody may see of the line.
    ///
    /// # Errors
    /// If daegi does not answer, or knows no such item.
    pub async fn line(&self) -> reqwest::Result<Line> {
        self.http.get(&self.line_url).send().await?.error_for_status()?.json().await
    }

    async fn wait_for_a_line_below(&self, longest: u64) {
        while !self.line().await.is_ok_and(|line| line.waiting_count < longest) {
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn wait_for_the_opening(&self) {
        let open = |line: Line| line.line_state == LineState::Open;
        while !self.line().await.is_ok_and(open) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Tally {
    fn note(&self, ending: Ending) {
        self.ends[ending as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self, ending: Ending) -> u32 {
        self.ends[ending as usize].load(Ordering::Relaxed)
    }

    /// How many came too late to join.
    #[must_use]
    pub fn turned_away(&self) -> u32 {
        self.count(Ending::TurnedAway)
    }

    /// How many left the line, or were never seen again.
    #[must_use]
    pub fn given_up(&self) -> u32 {
        self.count(Ending::Left) + self.count(Ending::Vanished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rush_takes_its_time_and_then_people_trickle_in() {
        let crowd = Crowd::new("", "", ItemId::parse("concert").unwrap());
        let rush: Duration = (1..crowd.size).map(|count| crowd.until_next(count)).sum();
        assert!(rush <= crowd.rush && rush + crowd.rush / 100 > crowd.rush, "{rush:?}");
        assert_eq!(crowd.until_next(crowd.size), crowd.trickle);
    }

    #[test]
    fn a_few_of_a_hundred_are_unreliable() {
        let item = ItemId::parse("concert").unwrap();
        let crowd = Crowd { leave_percent: 100, ..Crowd::new("", "", item) };
        assert_eq!(crowd.habit(), Habit::Leaves);
        let crowd = Crowd { leave_percent: 0, vanish_percent: 100, ..crowd };
        assert_eq!(crowd.habit(), Habit::Vanishes);
        let crowd = Crowd { vanish_percent: 0, ..crowd };
        assert_eq!(crowd.habit(), Habit::Stays);
    }
}
