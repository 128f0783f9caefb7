//! How fast a line moved, and the poll interval. The ETA of a position is in [`crate::wait`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// Length of a bucket in which the progress of a line is counted: 5 s.
pub const BUCKET_MS: Millis = 5_000;
/// Buckets that are kept.
pub const BUCKETS: u64 = 60;
/// The shortest and the longest poll interval.
const POLL_MS: (u64, u64) = (1_000, 30_000);
/// Movements closer to each other than this are too close to compute a speed from.
const SHORTEST_MOVE_MS: Millis = 20;
/// The displayed speed is the mean over this many full buckets.
const RECENT_BUCKETS: u64 = 6;

/// The estimated wait of a ticket. Pages show `p10` to `p90` as its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Eta {
    /// 10th percentile, in seconds.
    #[serde(default)]
    pub p10: u64,
    /// Median, in seconds.
    pub p50: u64,
    /// 90th percentile, in seconds.
    pub p90: u64,
}

/// A line's movement since it began to move, from which the speed is computed before there are full
/// buckets. Ticks are regular, so that the tickets after the first movement, divided by the time between the
/// first and the last movement, are the speed, wherever in a bucket the line began to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moves {
    /// When the first tickets left the front of the line.
    first_at: Millis,
    /// How many tickets left then.
    first: u64,
    /// When the last tickets left.
    last_at: Millis,
    /// How many tickets left after the first ones.
    later: u64,
}

/// How many tickets left the front of a line in each recent bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rate {
    /// (bucket, tickets), oldest first; buckets without movement are missing.
    buckets: Vec<(u64, u32)>,
    moves: Option<Moves>,
}

impl Rate {
    /// Returns the bucket of a time.
    pub fn bucket_of(now: Millis) -> u64 {
        now / BUCKET_MS
    }

    /// Creates a rate from stored counts, in any order.
    pub fn new(mut buckets: Vec<(u64, u32)>) -> Self {
        buckets.sort_unstable();
        Self { buckets, moves: None }
    }

    /// Adds the movement since the line began to move; `None` if it is unknown.
    #[must_use]
    pub fn with_moves(self, moves: Option<Moves>) -> Self {
        Self { moves, ..self }
    }

    /// Returns tickets per second over the last 30 s.
    pub fn per_second(&self, now: Millis) -> f64 {
        let speeds = self.speeds(now);
        let recent = &speeds[speeds.len().saturating_sub(RECENT_BUCKETS as usize)..];
        if recent.is_empty() { 0.0 } else { recent.iter().sum::<f64>() / recent.len() as f64 }
    }

    /// Returns tickets per second since the first movement that is kept, at most over 5 minutes.
    pub fn mean_per_second(&self, now: Millis) -> f64 {
        let speeds = self.speeds(now);
        speeds.iter().sum::<f64>() / speeds.len().max(1) as f64
    }

    /// The speed of every full bucket from the first movement kept to now, oldest first. The bucket
    /// in which the line began to move is not full. Until there are enough full ones, the speed since
    /// then is the only one.
    fn speeds(&self, now: Millis) -> Vec<f64> {
        let current = Self::bucket_of(now);
        let mut oldest = current.saturating_sub(BUCKETS);
        if let Some(moves) = self.moves.filter(|moves| moves.first_at <= now) {
            let began = Self::bucket_of(moves.first_at);
            if current - began <= RECENT_BUCKETS {
                return vec![moves.per_second(now)];
            }
            oldest = oldest.max(began + 1);
        }
        let Some(first) = self.buckets.iter().map(|(at, _)| *at).find(|at| *at >= oldest) else {
            return Vec::new();
        };
        if first >= current {
            let elapsed = (now % BUCKET_MS).max(1000) as f64 / 1000.0;
            return vec![f64::from(self.tickets_in(current)) / elapsed];
        }
        let seconds = BUCKET_MS as f64 / 1000.0;
        (first..current).map(|bucket| f64::from(self.tickets_in(bucket)) / seconds).collect()
    }

    fn tickets_in(&self, bucket: u64) -> u32 {
        let found = self.buckets.binary_search_by_key(&bucket, |(at, _)| *at);
        found.map_or(0, |index| self.buckets[index].1)
    }
}

impl Moves {
    /// Returns the movement after `tickets` left the front at `now`. A movement that is older than all
    /// buckets, or in the future because of clock skew, begins again.
    #[must_use]
    pub fn after(moves: Option<Self>, tickets: u32, now: Millis) -> Self {
        let tickets = u64::from(tickets);
        let is_kept = |moves: &Self| {
            moves.first_at <= now && now.saturating_sub(moves.last_at) <= BUCKETS * BUCKET_MS
        };
        match moves.filter(is_kept) {
            None => Self { first_at: now, first: tickets, last_at: now, later: 0 },
            Some(moves) if moves.first_at == now => Self { first: moves.first + tickets, ..moves },
            Some(moves) => {
                Self { last_at: moves.last_at.max(now), later: moves.later + tickets, ..moves }
            }
        }
    }

    /// Parses the stored form: `first_at:first:last_at:later`. Returns `None` for
    /// any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(':').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        let moves = Self { first_at: next()?, first: next()?, last_at: next()?, later: next()? };
        numbers.next().is_none().then_some(moves)
    }

    /// Returns tickets per second. If the line has not moved for longer than it moved before, the whole time
    /// counts.
    fn per_second(self, now: Millis) -> f64 {
        let seconds = |ms: Millis, least: Millis| ms.max(least) as f64 / 1000.0;
        let (moved, stood) = (self.last_at - self.first_at, now.saturating_sub(self.last_at));
        if self.later > 0 && stood <= moved.max(1_000) {
            self.later as f64 / seconds(moved, SHORTEST_MOVE_MS)
        } else {
            (self.first + self.later) as f64 / seconds(now - self.first_at, 1_000)
        }
    }
}

/// Returns the poll interval before jitter: a tenth of the wait, within bounds, and at least twice per grace
/// period if absent users lose their turn.
pub fn poll_after_ms(eta: Option<Eta>, grace_seconds: u32) -> u64 {
    let grace = if grace_seconds == 0 { u64::MAX } else { u64::from(grace_seconds) * 500 };
    let wait = eta.map_or(5_000, |eta| eta.p50 * 100);
    wait.clamp(POLL_MS.0, POLL_MS.1).min(grace.max(POLL_MS.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(tickets: u32, from: u64, to: u64) -> Rate {
        Rate::new((from..to).map(|bucket| (bucket, tickets)).collect())
    }

    #[test]
    fn the_speed_of_a_steady_line_is_exact() {
        let rate = steady(50, 100, 120);
        assert!((rate.per_second(120 * BUCKET_MS + 10) - 10.0).abs() < 1e-9);
        let first_seconds = steady(20, 100, 101);
        assert!((first_seconds.per_second(100 * BUCKET_MS + 2000) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_line_without_recent_movement_has_no_speed() {
        assert!(Rate::default().per_second(1_000_000).abs() < 1e-9);
        assert!(steady(50, 1, 2).per_second(1_000 * BUCKET_MS).abs() < 1e-9);
    }

    /// A line that begins to move at `from` and moves `tickets` per tick until `now`.
    fn ticking(from: Millis, tick_ms: Millis, tickets: u32, now: Millis) -> Rate {
        let (mut buckets, mut moves) = (std::collections::BTreeMap::new(), None);
        for at in (from..=now).step_by(usize::try_from(tick_ms).unwrap()) {
            *buckets.entry(Rate::bucket_of(at)).or_default() += tickets;
            moves = Some(Moves::after(moves, tickets, at));
        }
        Rate::new(buckets.into_iter().collect()).with_moves(moves)
    }

    #[test]
    fn the_estimate_is_within_a_fifth_after_two_ticks_wherever_the_line_began() {
        for tick_ms in [250, 1_000, 2_000, 10_000] {
            let truth = 10_000.0 / tick_ms as f64;
            for phase in (0..BUCKET_MS).step_by(500) {
                let from = 100 * BUCKET_MS + phase;
                for after in (tick_ms..90_000).step_by(370) {
                    let now = from + after;
                    let rate = ticking(from, tick_ms, 10, now);
                    let speed = rate.per_second(now);
                    // Buckets of 5 s hold a tick of 10 s or none, which the mean evens out.
                    let off = if tick_ms > BUCKET_MS { 0.4 } else { 0.2 };
                    let is_near = (speed / truth - 1.0).abs() <= off;
                    assert!(is_near, "tick {tick_ms}, phase {phase}, after {after}: {speed}");
                }
            }
        }
    }

    #[test]
    fn a_line_that_stops_soon_after_it_began_gets_slower() {
        let rate = ticking(100 * BUCKET_MS, 1_000, 10, 100 * BUCKET_MS + 1_000);
        let at = |after| rate.per_second(100 * BUCKET_MS + after);
        assert!((at(1_500) - 10.0).abs() < 1e-9);
        assert!(at(10_000) <= 2.0, "{}", at(10_000));
    }

    #[test]
    fn movement_is_read_as_stores_keep_it() {
        let moves = Moves::after(Some(Moves::after(None, 3, 5_000)), 4, 6_000);
        assert_eq!(Moves::parse("5000:3:6000:4"), Some(moves));
        for other in ["", "1:2:3", "1:2:3:4:5", "a:2:3:4"] {
            assert_eq!(Moves::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_poll_interval_is_a_tenth_of_the_wait() {
        let eta = |p50| Some(Eta { p10: p50, p50, p90: p50 });
        assert_eq!(poll_after_ms(eta(100), 60), 10_000);
        assert_eq!(poll_after_ms(eta(1), 60), 1_000);
        assert_eq!(poll_after_ms(eta(100_000), 0), 30_000);
        assert_eq!(poll_after_ms(eta(100_000), 20), 10_000);
        assert_eq!(poll_after_ms(None, 60), 5_000);
    }
}
