//! Failing dependencies: logged when an outage begins, changes and ends, and retried with a backoff.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use daegi_domain::ItemId;

/// Logs an outage of one component when it begins, when the text of the error changes, and when it
/// ends, however often the operation fails in between.
#[derive(Debug)]
pub struct OutageLog {
    component: &'static str,
    item: Option<ItemId>,
    latest: Option<String>,
}

/// The outage log of work that is divided into partitions: one outage for all of them, which ends
/// when the last partition has recovered.
#[derive(Debug)]
pub struct PartitionOutageLog {
    log: OutageLog,
    failing: BTreeSet<u16>,
}

/// The delay before a failed operation is tried again: doubles with each failure up to a limit.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    next: Duration,
}

impl OutageLog {
    /// Creates a log without an outage.
    #[must_use]
    pub fn new(component: &'static str) -> Self {
        Self { component, item: None, latest: None }
    }

    /// Creates a log, without an outage, of an operation on the line of this item.
    #[must_use]
    pub fn for_item(component: &'static str, item: ItemId) -> Self {
        Self { item: Some(item), ..Self::new(component) }
    }

    /// Returns whether the latest operation failed.
    #[must_use]
    pub fn is_ongoing(&self) -> bool {
        self.latest.is_some()
    }

    /// Records a failure. Returns whether it was logged: `false` if the previous one had the same text.
    pub fn failed(&mut self, error: &impl Display) -> bool {
        let text = error.to_string();
        let is_new = self.latest.as_ref() != Some(&text);
        if is_new {
            let (component, item) = (self.component, self.item());
            tracing::warn!(component, item.id = item, error = text, "operation failing, retrying");
            self.latest = Some(text);
        }
        is_new
    }

    /// Records a success. Logs it if it ends an outage.
    pub fn recovered(&mut self) {
        if self.latest.take().is_some() {
            let (component, item) = (self.component, self.item());
            tracing::info!(component, item.id = item, "operation recovered");
        }
    }

    fn item(&self) -> Option<&str> {
        self.item.as_ref().map(ItemId::as_str)
    }
}

impl PartitionOutageLog {
    /// Creates a log without an outage.
    #[must_use]
    pub fn new(component: &'static str) -> Self {
        Self { log: OutageLog::new(component), failing: BTreeSet::new() }
    }

    /// Records a failure of a partition. Returns whether it was logged.
    pub fn failed(&mut self, partition: u16, error: &impl Display) -> bool {
        self.failing.insert(partition);
        self.log.failed(error)
    }

    /// Records a success of a partition. Returns whether it ends the outage.
    pub fn recovered(&mut self, partition: u16) -> bool {
        let is_last = self.failing.remove(&partition) && self.failing.is_empty();
        if is_last {
            self.log.recovered();
        }
        is_last
    }
}

impl Backoff {
    /// A backoff from `first` to `max`.
    #[must_use]
    pub fn new(first: Duration, max: Duration) -> Self {
        Self { first, max, next: first }
    }

    /// Returns the delay after one more failure.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(self.max);
        delay
    }

    /// Starts again with the first delay after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Returns the delay ±20 %, so that replicas that started together do not retry in lockstep.
#[must_use]
pub fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(0.8 + 0.4 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_failure_is_logged_once_and_again_after_a_recovery() {
        let mut outage = OutageLog::new("test");
        assert!(outage.failed(&"no reply"));
        assert!(!outage.failed(&"no reply"));
        assert!(outage.failed(&"connection refused") && outage.is_ongoing());
        outage.recovered();
        assert!(!outage.is_ongoing());
        assert!(outage.failed(&"connection refused"));
    }

    #[test]
    fn an_outage_of_several_partitions_ends_with_the_last_one() {
        let mut outage = PartitionOutageLog::new("test");
        assert!(outage.failed(1, &"no reply"));
        assert!(!outage.failed(2, &"no reply"));
        assert!(!outage.recovered(0), "this partition never failed");
        assert!(!outage.recovered(1));
        assert!(outage.recovered(2));
        assert!(outage.failed(1, &"no reply"));
    }

    #[test]
    fn a_backoff_doubles_to_its_limit_and_starts_again() {
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(1));
        let delays = [(); 4].map(|()| backoff.next_delay().as_millis());
        assert_eq!(delays, [250, 500, 1_000, 1_000]);
        backoff.reset();
        assert_eq!(backoff.next_delay(), Duration::from_millis(250));
    }
}
