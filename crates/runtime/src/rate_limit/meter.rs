//! Measures how often something happens per key, in a fixed amount of memory.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use super::table::TimeTable;

/// Counts events per key and forgets half of a count in each half-life, so that the count follows the rate.
///
/// A count that only decays and grows by 1 is one time: the time at which it will have decayed to 1. It is a half-life
/// later for each doubling of the count. Keys are in a table of fixed size, in which a new key replaces the key of its
/// set with the lowest count. So with far more keys than slots a meter measures too little and never too much, and
/// many keys with a low count do not replace one with a high count.
pub struct RateMeter {
    table: TimeTable,
    half_life: f64,
}

impl RateMeter {
    /// A meter for about this many active keys, 16 bytes each.
    #[must_use]
    pub fn new(keys: usize, half_life: Duration) -> Self {
        Self { table: TimeTable::new(keys), half_life: half_life.as_nanos() as f64 }
    }

    /// Counts an event of a key. Returns the count with it: 1 for the first event, and `r * half_life / ln 2` while `r`
    /// events happen per second.
    pub fn count(&self, key: impl Hash) -> f64 {
        // A time of 0 is no count. The count of 1 at the start of the table is a half-life later.
        let now = self.half_life + self.table.now() as f64;
        let mut count = 0.0;
        let add = |time: u64| {
            let before =
                if time == 0 { 0.0 } else { ((time as f64 - now) / self.half_life).exp2() };
            count = before + 1.0;
            // Positive and far below 2^63 nanoseconds, which are 292 years.
            Some((now + count.log2() * self.half_life) as u64)
        };
        // Never refused.
        let _ = self.table.update(key, add);
        count
    }
}

impl fmt::Debug for RateMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateMeter").field("slots", &self.table.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn rounded(count: f64) -> u64 {
        count.round() as u64
    }

    #[tokio::test(start_paused = true)]
    async fn a_count_grows_by_one_and_halves_in_a_half_life() {
        let meter = RateMeter::new(1000, MINUTE);
        let counts: Vec<_> = (0..800).map(|_| rounded(meter.count("a"))).collect();
        assert_eq!(counts, (1..=800).collect::<Vec<_>>());
        assert_eq!(rounded(meter.count("b")), 1, "each key has its own count");
        tokio::time::advance(MINUTE).await;
        assert_eq!(rounded(meter.count("a")), 401);
        tokio::time::advance(100 * MINUTE).await;
        assert_eq!(rounded(meter.count("a")), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_steady_rate_has_a_steady_count() {
        let meter = RateMeter::new(1000, MINUTE);
        let mut count = 0.0;
        for _ in 0..10_000 {
            tokio::time::advance(Duration::from_millis(100)).await;
            count = meter.count("a");
        }
        let expected = 10.0 * 60.0 / std::f64::consts::LN_2;
        assert!((count / expected - 1.0).abs() < 0.01, "{count} at 10 per second");
    }

    #[tokio::test(start_paused = true)]
    async fn a_million_keys_use_the_same_memory_and_do_not_displace_a_high_count() {
        let meter = RateMeter::new(16_384, MINUTE);
        let bytes = meter.table.bytes();
        for _ in 0..100 {
            meter.count("busy");
        }
        for key in 0..1_000_000 {
            assert_eq!(rounded(meter.count(key)), 1);
        }
        assert_eq!((meter.table.bytes(), bytes), (16_384 * 16, 16_384 * 16));
        assert_eq!(rounded(meter.count("busy")), 101);
    }
}
