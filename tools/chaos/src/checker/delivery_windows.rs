//! When events could leave the store and orders could reach it. Everything committed before such a window has left the store, so
//! a later data loss cannot have removed it.

use crate::History;
use crate::history::{Fault, Millis, Setup};

/// In ms: a failed relay waits at most 4 s and reconnects within 1 s.
const AFTER_STORE: Millis = 5_000;

/// In ms: a restarted broker leads its partitions after some time, clients retry every second, and then the backoff of the relay
/// may have to pass.
const AFTER_KAFKA: Millis = 8_000;

/// In ms: the session of a dead consumer times out after 10 s, and then its partitions are reassigned.
const AFTER_CONSUMER: Millis = 15_000;

/// Begin and end.
type Window = (Millis, Millis);

/// The times without faults on the paths of events and orders.
#[derive(Debug, Default)]
pub(super) struct DeliveryWindows {
    /// Events: from the outbox to Kafka.
    relay: Vec<Window>,
    /// Orders: from Kafka to the store.
    orders: Vec<Window>,
    /// Maximum delivery time without faults.
    takes: Millis,
}

impl DeliveryWindows {
    pub(super) fn from_history(setup: &Setup, history: &History) -> Self {
        let servers: Vec<_> = history.faults.iter().filter_map(server_fault).collect();
        let led = history.terms.iter().flat_map(|term| {
            let own = history.faults.iter().filter(|fault| fault.target == term.member);
            let own = own.map(|fault| (fault.from, fault.to + AFTER_STORE));
            subtract((term.from, term.to), own.chain(servers.iter().copied()).collect())
        });
        let mut relay: Vec<_> = led.collect();
        if history.terms.is_empty() {
            relay = subtract((0, Millis::MAX), servers.clone());
        }
        let consumers = history.faults.iter().filter(|fault| fault.target.starts_with("consumer"));
        let consumers = consumers.map(|fault| (fault.from, fault.to + AFTER_CONSUMER));
        let orders = subtract((0, Millis::MAX), consumers.chain(servers).collect());
        Self { relay, orders, takes: setup.max_delivery }
    }

    /// Everything committed before the returned time was published before `before`.
    pub(super) fn published(&self, before: Millis) -> Millis {
        latest_delivered(&self.relay, self.takes, before)
    }

    /// Orders published before the returned time had taken effect, and their events were published, before `before`.
    pub(super) fn ordered(&self, before: Millis) -> Millis {
        latest_delivered(&self.orders, self.takes, self.published(before))
    }
}

/// The window of a fault of Redis or Kafka, with its after-effects.
fn server_fault(fault: &Fault) -> Option<Window> {
    match fault.target.as_str() {
        "redis" => Some((fault.from, fault.to + AFTER_STORE)),
        "kafka" => Some((fault.from, fault.to + AFTER_KAFKA)),
        _ => None,
    }
}

/// The parts of a window without faults.
fn subtract((from, to): Window, mut blocked: Vec<Window>) -> Vec<Window> {
    blocked.sort_unstable();
    let (mut left, mut since) = (Vec::new(), from);
    for (begins, ends) in blocked.into_iter().filter(|(begins, _)| *begins < to) {
        left.push((since, begins));
        since = since.max(ends);
    }
    left.push((since, to));
    left.retain(|(since, until)| since < until);
    left
}

/// The latest time from which a delivery was possible.
fn latest_delivered(windows: &[Window], takes: Millis, before: Millis) -> Millis {
    let clipped = windows.iter().map(|(since, until)| (*since, (*until).min(before)));
    let long = clipped.filter(|(since, until)| since + takes <= *until);
    long.map(|(_, until)| until - takes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Entry, FaultKind, Term, TermEnd};

    fn windows(
        faults: &[(&str, Millis, Millis)],
        terms: &[(&str, Millis, Millis)],
    ) -> DeliveryWindows {
        let setup = Setup { max_delivery: 3_000, ..Setup::default() };
        let faults = faults.iter().map(|(target, from, to)| {
            let (what, target) = (FaultKind::Kill, (*target).to_owned());
            Entry::Fault(Fault { what, target, from: *from, to: *to })
        });
        let terms = terms.iter().zip(1..).map(|((member, from, to), epoch)| {
            let (member, end) = ((*member).to_owned(), TermEnd::LeaseLost);
            Entry::Term(Term { member, epoch, from: *from, to: *to, end })
        });
        DeliveryWindows::from_history(&setup, &faults.chain(terms).collect())
    }

    #[test]
    fn a_relay_without_faults_publishes_within_the_delivery_time() {
        assert_eq!(windows(&[], &[]).published(60_000), 57_000);
        assert_eq!(
            windows(&[("scheduler-2", 50_000, 60_000)], &[("scheduler-1", 0, 90_000)])
                .published(60_000),
            57_000
        );
    }

    #[test]
    fn nothing_is_published_during_and_shortly_after_an_outage_of_kafka_or_redis() {
        assert_eq!(windows(&[("kafka", 50_000, 55_000)], &[]).published(60_000), 47_000);
        assert_eq!(windows(&[("kafka", 40_000, 45_000)], &[]).published(60_000), 57_000);
        assert_eq!(windows(&[("redis", 50_000, 52_000)], &[]).published(60_000), 57_000);
        assert_eq!(windows(&[("redis", 50_000, 53_000)], &[]).published(60_000), 47_000);
    }

    #[test]
    fn nothing_is_published_without_a_leader_or_during_a_fault_of_the_leader() {
        let terms = [("scheduler-1", 10_000, 52_000), ("scheduler-2", 54_000, 90_000)];
        let faults = [("scheduler-1", 50_000, 55_000)];
        assert_eq!(windows(&faults, &terms).published(56_000), 47_000);
        assert_eq!(windows(&faults, &terms).published(60_000), 57_000);
    }

    #[test]
    fn an_order_waits_for_consumers_too() {
        assert_eq!(windows(&[], &[]).ordered(60_000), 54_000);
        assert_eq!(windows(&[("consumer-1", 45_000, 48_000)], &[]).ordered(60_000), 42_000);
    }
}
