//! Limits how often something happens per key, in a fixed amount of memory.
//!
//! The generic cell rate algorithm: each key has one time, its *theoretical arrival time*, which moves ahead by
//! the interval of the rate with every event and may be ahead of the clock by the burst. That is the same as a
//! token bucket, and fits into one atomic integer.
//!
//! Keys are in a hash table of fixed size, whose hash has a random key, so that a client cannot choose
//! which keys share a set. A new key replaces the key of its set that was idle the longest. So with far more
//! active keys than slots some keys lose their count, which permits too much and never refuses too much.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Slots of one set: a key is in one of them.
const WAYS: usize = 8;

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
    slots: Box<[Slot]>,
    hasher: RandomState,
    start: Instant,
}

/// A key and its theoretical arrival time in nanoseconds since the start of the limiter. They are two
/// integers: if two threads put two keys into one slot at the same time, one of them gets the other's time, which
/// is harmless.
#[derive(Debug, Default)]
struct Slot {
    /// The hash of the key; 0 for none.
    key: AtomicU64,
    arrival: AtomicU64,
}

impl Rate {
    /// Returns the rate; `None` for `off`.
    ///
    /// # Errors
    /// If the text is no rate.
    pub fn parse(text: &str) -> Result<Option<Self>, InvalidRate> {
        if text == "off" { Ok(None) } else { text.parse().map(Some) }
    }

    fn interval(self) -> u64 {
        1_000_000_000 / u64::from(self.per_second)
    }
}

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let (per_second, burst) = text.split_once(':').ok_or(InvalidRate)?;
        let count = |text: &str| text.parse().ok().filter(|count| (1..=1_000_000).contains(count));
        let (per_second, burst) = count(per_second).zip(count(burst)).ok_or(InvalidRate)?;
        Ok(Self { per_second, burst })
    }
}

impl RateLimiter {
    /// A limiter for about this many active keys, 16 bytes each.
    #[must_use]
    pub fn new(keys: usize) -> Self {
        let sets = keys.div_ceil(WAYS).next_power_of_two();
        let slots = std::iter::repeat_with(Slot::default).take(sets * WAYS).collect();
        Self { slots, hasher: RandomState::new(), start: Instant::now() }
    }

    /// Counts an event of a key.
    ///
    /// # Errors
    /// Returns how long until the rate permits one, if it does not permit this one. It is then not counted.
    pub fn check(&self, key: impl Hash, rate: Rate) -> Result<(), Duration> {
        let hash = self.hasher.hash_one(key).max(1);
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (interval, slot) = (rate.interval(), self.slot(hash));
        let latest = now + interval * u64::from(rate.burst - 1);
        let advance = |arrival: u64| (arrival <= latest).then(|| arrival.max(now) + interval);
        let updated = slot.arrival.fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance);
        updated.map(drop).map_err(|arrival| Duration::from_nanos(arrival - latest))
    }

    /// Returns the slot of a key. A new key takes the slot of its set with the earliest time.
    fn slot(&self, hash: u64) -> &Slot {
        let sets = self.slots.len() / WAYS;
        // The table has a power of two of sets and fits into memory.
        let first = (hash as usize & (sets - 1)) * WAYS;
        let set = &self.slots[first..first + WAYS];
        if let Some(slot) = set.iter().find(|slot| slot.key.load(Ordering::Relaxed) == hash) {
            return slot;
        }
        let earliest = set.iter().min_by_key(|slot| slot.arrival.load(Ordering::Relaxed));
        let slot = earliest.unwrap_or(&set[0]);
        slot.key.store(hash, Ordering::Relaxed);
        slot.arrival.store(0, Ordering::Relaxed);
        slot
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter").field("slots", &self.slots.len()).finish_non_exhaustive()
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
        let slots = limiter.slots.len();
        for key in 0..1_000_000 {
            assert_eq!(limiter.check(key, rate), Ok(()));
        }
        assert_eq!(limiter.slots.len(), slots);
        assert_eq!(slots * size_of::<Slot>(), 16_384 * 16);
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

    #[test]
    fn rates_are_parsed() {
        assert_eq!(Rate::parse("off"), Ok(None));
        assert_eq!(Rate::parse("20:500"), Ok(Some(Rate { per_second: 20, burst: 500 })));
        for bad in ["", "20", "0:5", "5:0", "-1:5", "20:1000001", "a:b", "20:5:1"] {
            assert_eq!(Rate::parse(bad), Err(InvalidRate), "{bad}");
        }
    }
}
