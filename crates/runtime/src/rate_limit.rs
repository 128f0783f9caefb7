//! Limits how often something happens per key, in a fixed amount of memory.
//!
//! The generic cell rate algorithm: each key has one time, its *theoretical arrival time*, which moves ahead by
//! the interval of the rate with every event and may be ahead of the clock by the burst. That is the same as a
//! token bucket, and fits into one atomic integer.
//!
//! Keys are in a hash table of fixed size, in which a new key replaces the key of its set that was idle the longest.
//! So with far more active keys than slots some keys lose their count, which permits too much and never refuses too
//! much. [`RateMeter`] measures rates in such a table.

mod meter;
mod table;

use std::fmt;
use std::hash::Hash;
use std::str::FromStr;
use std::time::Duration;

pub use self::meter::RateMeter;
use self::table::TimeTable;

/// Maximum events per second and maximum burst, so that the times of a table do not overflow.
const MAX_COUNT: u32 = 1_000_000;

/// A rate with a burst. `20:500` permits 500 events at the same time and 20 per second after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    per_second: u32,
    burst: u32,
}

/// The text is not a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be off, or events per second and burst such as 20:500, both at least 1")]
pub struct InvalidRate;

/// Counts events per key.
pub struct RateLimiter {
    /// The theoretical arrival times.
    arrivals: TimeTable,
}

impl Rate {
    /// Returns the rate; `None` for `off`.
    ///
    /// # Errors
    /// If the text is no rate.
    pub fn parse(text: &str) -> Result<Option<Self>, InvalidRate> {
        if text == "off" { Ok(None) } else { text.parse().map(Some) }
    }

    /// Returns the rate with `factor` times the events per second and the burst.
    #[must_use]
    pub fn times(self, factor: u32) -> Self {
        let times = |count: u32| count.saturating_mul(factor).min(MAX_COUNT);
        Self { per_second: times(self.per_second), burst: times(self.burst) }
    }

    fn interval(self) -> u64 {
        1_000_000_000 / u64::from(self.per_second)
    }

    /// Returns the latest arrival time of a key at which the rate permits an event now.
    fn latest_arrival(self, now: u64) -> u64 {
        now + self.interval() * u64::from(self.burst - 1)
    }
}

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let (per_second, burst) = text.split_once(':').ok_or(InvalidRate)?;
        let count = |text: &str| text.parse().ok().filter(|count| (1..=MAX_COUNT).contains(count));
        let (per_second, burst) = count(per_second).zip(count(burst)).ok_or(InvalidRate)?;
        Ok(Self { per_second, burst })
    }
}

impl RateLimiter {
    /// A limiter for about this many active keys, 16 bytes each.
    #[must_use]
    pub fn new(keys: usize) -> Self {
        Self { arrivals: TimeTable::new(keys) }
    }

    /// Counts an event of a key.
    ///
    /// # Errors
    /// Returns how long until the rate permits one, if it does not permit this one. It is then not counted.
    pub fn check(&self, key: impl Hash, rate: Rate) -> Result<(), Duration> {
        let now = self.arrivals.now();
        let (interval, latest) = (rate.interval(), rate.latest_arrival(now));
        let advance = |arrival: u64| (arrival <= latest).then(|| arrival.max(now) + interval);
        let updated = self.arrivals.update(key, advance);
        updated.map(drop).map_err(|arrival| Duration::from_nanos(arrival - latest))
    }

    /// Returns whether the rate permits no event of a key now. Counts nothing.
    pub fn is_exhausted(&self, key: impl Hash, rate: Rate) -> bool {
        self.arrivals.get(key) > rate.latest_arrival(self.arrivals.now())
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter").field("slots", &self.arrivals.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_has_its_burst_and_then_its_rate() {
        let (limiter, rate) = (RateLimiter::new(1000), rate("10:5"));
        let passed = |key: &str| (0..100).filter(|_| limiter.check(key, rate).is_ok()).count();
        assert_eq!((passed("a"), passed("b")), (5, 5), "each key has its own count");
        assert_eq!(limiter.check("a", rate), Err(Duration::from_millis(100)));
        tokio::time::advance(Duration::from_millis(99)).await;
        assert_eq!(limiter.check("a", rate), Err(Duration::from_millis(1)));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(passed("a"), 1);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(passed("a"), 5, "the burst does not grow");
    }

    #[tokio::test(start_paused = true)]
    async fn a_million_keys_use_the_same_memory_and_none_is_refused_too_early() {
        let (limiter, rate) = (RateLimiter::new(10_000), rate("1:2"));
        let bytes = limiter.arrivals.bytes();
        for key in 0..1_000_000 {
            assert_eq!(limiter.check(key, rate), Ok(()));
        }
        assert_eq!((limiter.arrivals.bytes(), bytes), (16_384 * 16, 16_384 * 16));
    }

    #[tokio::test(start_paused = true)]
    async fn keys_up_to_half_of_the_slots_keep_their_count() {
        let (limiter, rate) = (RateLimiter::new(65_536), rate("1:1"));
        let count = 16_384;
        let passed = |limiter: &RateLimiter| {
            (0..count).filter(|key| limiter.check(key, rate).is_ok()).count()
        };
        assert_eq!(passed(&limiter), count);
        let forgotten = passed(&limiter);
        assert!(forgotten < count / 1000, "{forgotten} keys lost their count");
    }

    #[tokio::test(start_paused = true)]
    async fn whether_a_rate_is_exhausted_is_read_without_counting() {
        let (limiter, rate) = (RateLimiter::new(1000), rate("10:2"));
        for _ in 0..10 {
            assert!(!limiter.is_exhausted("a", rate));
        }
        assert_eq!(limiter.check("a", rate), Ok(()));
        assert!(!limiter.is_exhausted("a", rate));
        assert_eq!(limiter.check("a", rate), Ok(()));
        assert!(limiter.is_exhausted("a", rate));
        tokio::time::advance(Duration::from_millis(100)).await;
        assert!(!limiter.is_exhausted("a", rate));
    }

    #[test]
    fn rates_are_parsed() {
        assert_eq!(Rate::parse("off"), Ok(None));
        assert_eq!(Rate::parse("20:500"), Ok(Some(Rate { per_second: 20, burst: 500 })));
        assert_eq!(rate("20:500").times(8), Rate { per_second: 160, burst: 4000 });
        assert_eq!(rate("1:1000000").times(8), Rate { per_second: 8, burst: MAX_COUNT });
        for bad in ["", "20", "0:5", "5:0", "-1:5", "20:1000001", "a:b", "20:5:1"] {
            assert_eq!(Rate::parse(bad), Err(InvalidRate), "{bad}");
        }
    }
}
