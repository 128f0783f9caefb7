//! Time as an input: unix milliseconds from the system, or from a test's hand.
//!
//! The stores take time as an argument, so whoever calls them owns a [`Clock`]. With a manual one
//! a test decides when a grace period ends, and nothing in a test has to sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tells the time in unix milliseconds. Clones share one source.
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

    /// A clock that stands still at `start_ms` until it is told otherwise.
    #[must_use]
    pub fn manual(start_ms: u64) -> Self {
        Self(Source::Manual(Arc::new(AtomicU64::new(start_ms))))
    }

    /// Unix milliseconds. A system clock set before 1970 reads as 0.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        match &self.0 {
            Source::System => whole_millis(since_epoch()),
            Source::Manual(now) => now.load(Ordering::SeqCst),
        }
    }

    /// Moves a manual clock forward, for all its clones.
    ///
    /// # Panics
    /// If this is the system clock: only a test may move time.
    pub fn advance(&self, by: Duration) {
        self.hand().fetch_add(whole_millis(by), Ordering::SeqCst);
    }

    /// Sets a manual clock, backwards as well: real clocks do that, too.
    ///
    /// # Panics
    /// If this is the system clock: only a test may move time.
    pub fn set(&self, now_ms: u64) {
        self.hand().store(now_ms, Ordering::SeqCst);
    }

    fn hand(&self) -> &AtomicU64 {
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
