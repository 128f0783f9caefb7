//! Time as an input: unix milliseconds of the system, or set by a test.
//!
//! Store calls take the time as an argument, so their callers own a [`Clock`]. With a manual clock
//! a test decides when a grace period ends and does not sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the time in unix milliseconds. Clones share one source.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System,
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The wall clock of this machine.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stays at `start_ms` until it is advanced or set.
    #[must_use]
    pub fn manual(start_ms: u64) -> Self {
        Self(Source::Manual(Arc::new(AtomicU64::new(start_ms))))
    }

    /// Returns unix milliseconds; 0 for a system clock before 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match &self.0 {
            Source::System => whole_millis(since_epoch()),
            Source::Manual(now) => now.load(Ordering::SeqCst),
        }
    }

    /// Advances a manual clock and all its clones.
    ///
    /// # Panics
    /// If this is the system clock: only a test may move time.
    pub fn advance(&self, by: Duration) {
        self.manual_time().fetch_add(whole_millis(by), Ordering::SeqCst);
    }

    /// Sets a manual clock, also backwards, as real clocks can be.
    ///
    /// # Panics
    /// If this is the system clock: only a test may move time.
    pub fn set(&self, now_ms: u64) {
        self.manual_time().store(now_ms, Ordering::SeqCst);
    }

    fn manual_time(&self) -> &AtomicU64 {
        match &self.0 {
            Source::System => panic!("the system clock cannot be moved"),
            Source::Manual(now) => now,
        }
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_for_all_its_clones() {
        let clock = Clock::manual(1_000);
        let clone = clock.clone();
        clock.advance(Duration::from_millis(250));
        assert_eq!(clone.now_ms(), 1_250);
        clone.set(7);
        assert_eq!(clock.now_ms(), 7);
    }

    #[test]
    fn the_system_clock_reads_milliseconds_of_this_century() {
        let year_2020 = 1_577_836_800_000;
        let year_2100 = 4_102_444_800_000;
        assert!((year_2020..year_2100).contains(&Clock::system().now_ms()));
    }

    #[test]
    #[should_panic(expected = "cannot be moved")]
    fn the_system_clock_cannot_be_moved() {
        Clock::system().advance(Duration::from_secs(1));
    }
}
