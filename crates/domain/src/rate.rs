//! How fast a line moves, when a person's turn will come, and how often to ask.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// The line's progress is counted in buckets of this length…
pub const BUCKET_MS: Millis = 5_000;
/// …of which this many are kept.
pub const BUCKETS: u64 = 60;
/// How often to ask, at the most and at the least.
const POLL_MS: (u64, u64) = (1_000, 30_000);
/// Speed shown to people is the mean over this many full buckets.
const RECENT_BUCKETS: u64 = 6;

/// When a person's turn will probably come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Eta {
    /// Half of the people wait at most this many seconds.
    pub p50: u64,
    /// Nine of ten wait at most this many seconds.
    pub p90: u64,
}

/// How fast a line moves at one moment, in people per second. Computed once, it tells everybody in
/// the line when their turn will come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    median: f64,
    slow: f64,
}

/// How many people left the front of a line in each recent bucket of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rate {
    /// (bucket, people), oldest first; buckets without movement are missing.
    buckets: Vec<(u64, u32)>,
}

impl Rate {
    /// The bucket a moment falls into.
    pub fn bucket_of(now: Millis) -> u64 {
        now / BUCKET_MS
    }

    /// From stored counts, in any order.
    pub fn new(mut buckets: Vec<(u64, u32)>) -> Self {
        buckets.sort_unstable();
        Self { buckets }
    }

    /// People per second over the last half minute.
    pub fn per_second(&self, now: Millis) -> f64 {
        let speeds = self.speeds(now);
        let recent = &speeds[speeds.len().saturating_sub(RECENT_BUCKETS as usize)..];
        if recent.is_empty() { 0.0 } else { recent.iter().sum::<f64>() / recent.len() as f64 }
    }

    /// The median and the slow tenth of the speeds measured over the last minutes, or none while
    /// unknown.
    pub fn pace(&self, now: Millis) -> Option<Pace> {
        let mut speeds = self.speeds(now);
        speeds.sort_unstable_by(f64::total_cmp);
        let mean = speeds.iter().sum::<f64>() / speeds.len().max(1) as f64;
        if mean <= 0.0 {
            return None;
        }
        // A line slower than one person per bucket has mostly empty buckets: then the mean is
        // the honest figure, and the slow tenth is taken as a third of it.
        let at = |part: f64| speeds[((speeds.len() - 1) as f64 * part) as usize];
        let (median, slow) = (at(0.5).max(mean / 2.0), at(0.1).max(mean / 3.0));
        Some(Pace { median, slow: slow.min(median) })
    }

    /// The speed of every full bucket from the first movement kept to now, oldest first. The
    /// running bucket counts only while there is no full one.
    fn speeds(&self, now: Millis) -> Vec<f64> {
        let current = Self::bucket_of(now);
        let oldest = current.saturating_sub(BUCKETS);
        let Some(first) = self.buckets.iter().map(|(at, _)| *at).find(|at| *at >= oldest) else {
            return Vec::new();
        };
        if first >= current {
            let elapsed = (now % BUCKET_MS).max(1000) as f64 / 1000.0;
            return vec![f64::from(self.people_in(current)) / elapsed];
        }
        let seconds = BUCKET_MS as f64 / 1000.0;
        (first..current).map(|bucket| f64::from(self.people_in(bucket)) / seconds).collect()
    }

    fn people_in(&self, bucket: u64) -> u32 {
        let found = self.buckets.binary_search_by_key(&bucket, |(at, _)| *at);
        found.map_or(0, |index| self.buckets[index].1)
    }
}

impl Pace {
    /// The estimate for a person with `ahead` people to go first.
    pub fn eta(self, ahead: u64) -> Eta {
        let seconds = |speed: f64| (ahead as f64 / speed).ceil() as u64;
        Eta { p50: seconds(self.median), p90: seconds(self.slow) }
    }
}

/// When to ask again, before jitter: a tenth of the wait, but within bounds and, where unseen
/// people lose their turn, at least twice per grace period.
pub fn poll_after_ms(eta: Option<Eta>, grace_seconds: u32) -> u64 {
    let grace = if grace_seconds == 0 { u64::MAX } else { u64::from(grace_seconds) * 500 };
    let wait = eta.map_or(5_000, |eta| eta.p50 * 100);
    wait.clamp(POLL_MS.0, POLL_MS.1).min(grace.max(POLL_MS.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(people: u32, from: u64, to: u64) -> Rate {
        Rate::new((from..to).map(|bucket| (bucket, people)).collect())
    }

    fn eta(rate: &Rate, now: Millis, ahead: u64) -> Option<Eta> {
        rate.pace(now).map(|pace| pace.eta(ahead))
    }

    #[test]
    fn a_steady_line_is_foretold_exactly() {
        let rate = steady(50, 100, 120);
        let now = 120 * BUCKET_MS + 10;
        assert_eq!(eta(&rate, now, 100), Some(Eta { p50: 10, p90: 10 }));
        assert!((rate.per_second(now) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn an_unsteady_line_has_a_wider_range() {
        let rate = Rate::new((100..120).map(|b| (b, if b % 4 == 0 { 10 } else { 50 })).collect());
        let eta = eta(&rate, 120 * BUCKET_MS, 1000).unwrap();
        assert_eq!(eta.p50, 100);
        assert!(eta.p90 > 2 * eta.p50, "{eta:?}");
    }

    #[test]
    fn nothing_is_promised_while_nothing_moved_lately() {
        assert_eq!(Rate::default().pace(1_000_000), None);
        let long_ago = steady(50, 1, 2);
        assert_eq!(long_ago.pace(1_000 * BUCKET_MS), None);
    }

    #[test]
    fn the_first_seconds_already_tell() {
        let rate = steady(20, 100, 101);
        assert_eq!(eta(&rate, 100 * BUCKET_MS + 2000, 100), Some(Eta { p50: 10, p90: 10 }));
    }

    #[test]
    fn people_are_asked_to_wait_a_tenth_of_their_wait() {
        let eta = |p50| Some(Eta { p50, p90: p50 });
        assert_eq!(poll_after_ms(eta(100), 60), 10_000);
        assert_eq!(poll_after_ms(eta(1), 60), 1_000);
        assert_eq!(poll_after_ms(eta(100_000), 0), 30_000);
        assert_eq!(poll_after_ms(eta(100_000), 20), 10_000);
        assert_eq!(poll_after_ms(None, 60), 5_000);
    }
}
