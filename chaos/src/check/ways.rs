//! When events could leave the store, and orders reach it. What happened before such a time has left it,
//! so that a loss that comes later cannot have taken it along.

use crate::History;
use crate::history::{Fault, Millis, Setup};

/// A relay that failed pauses for 4 s at most, and connects again within one.
const AFTER_STORE: Millis = 5_000;

/// A broker that is back leads its partitions a little later, clients try again every second, and then
/// the relay's pause may have to pass.
const AFTER_KAFKA: Millis = 8_000;

/// A consumer that is dead is missed after 10 s, and then others share what it had.
const AFTER_CONSUMER: Millis = 15_000;

/// From when, until when.
type Stretch = (Millis, Millis);

/// When nothing was in the way.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// Of events, from the outbox to Kafka.
    relay: Vec<Stretch>,
    /// Of orders, from Kafka to the store.
    orders: Vec<Stretch>,
    /// So long it takes then.
    takes: Millis,
}

impl Ways {
    pub(super) fn of(setup: &Setup, history: &History) -> Self {
        let servers: Vec<_> = history.faults.iter().filter_map(of_servers).collect();
        let led = history.terms.iter().flat_map(|term| {
            let own = history.faults.iter().filter(|fault| fault.target == term.member);
            let own = own.map(|fault| (fault.from, fault.to + AFTER_STORE));
            free((term.from, term.to), own.chain(servers.iter().copied()).collect())
        });
        let mut relay: Vec<_> = led.collect();
        if history.terms.is_empty() {
            relay = free((0, Millis::MAX), servers.clone());
        }
        let consumers = history.faults.iter().filter(|fault| fault.target.starts_with("consumer"));
        let consumers = consumers.map(|fault| (fault.from, fault.to + AFTER_CONSUMER));
        let orders = free((0, Millis::MAX), consumers.chain(servers).collect());
        Self { relay, orders, takes: setup.on_its_way }
    }

    /// What happened before this moment was published before that one.
    pub(super) fn published(&self, before: Millis) -> Millis {
        done(&self.relay, self.takes, before)
    }

    /// An order that was given before this moment had taken effect, and was published, before that one.
    pub(super) fn ordered(&self, before: Millis) -> Millis {
        done(&self.orders, self.takes, self.published(before))
    }
}

/// Until when a fault of what all depend on is felt.
fn of_servers(fault: &Fault) -> Option<Stretch> {
    match fault.target.as_str() {
        "redis" => Some((fault.from, fault.to + AFTER_STORE)),
        "kafka" => Some((fault.from, fault.to + AFTER_KAFKA)),
        _ => None,
    }
}

/// What is left of a time when nothing is in the way.
fn free((from, to): Stretch, mut blocked: Vec<Stretch>) -> Vec<Stretch> {
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

/// The latest moment after which there was time enough.
fn done(stretches: &[Stretch], takes: Millis, before: Millis) -> Millis {
    let clipped = stretches.iter().map(|(since, until)| (*since, (*until).min(before)));
    let long = clipped.filter(|(since, until)| since + takes <= *until);
    long.map(|(_, until)| until - takes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Ending, Entry, FaultKind, Term};

    fn ways(faults: &[(&str, Millis, Millis)], terms: &[(&str, Millis, Millis)]) -> Ways {
        let setup = Setup { on_its_way: 3_000, ..Setup::default() };
        let faults = faults.iter().map(|(target, from, to)| {
            let (what, target) = (FaultKind::Kill, (*target).to_owned());
            Entry::Fault(Fault { what, target, from: *from, to: *to })
        });
        let terms = terms.iter().zip(1..).map(|((member, from, to), epoch)| {
            let (member, ending) = ((*member).to_owned(), Ending::Lost);
            Entry::Term(Term { member, epoch, from: *from, to: *to, ending })
        });
        Ways::of(&setup, &faults.chain(terms).collect())
    }

    #[test]
    fn a_relay_that_is_well_publishes_within_moments() {
        assert_eq!(ways(&[], &[]).published(60_000), 57_000);
        assert_eq!(
            ways(&[("scheduler-2", 50_000, 60_000)], &[("scheduler-1", 0, 90_000)])
                .published(60_000),
            57_000
        );
    }

    #[test]
    fn nothing_is_published_while_kafka_or_redis_is_away_and_a_while_after() {
        assert_eq!(ways(&[("kafka", 50_000, 55_000)], &[]).published(60_000), 47_000);
        assert_eq!(ways(&[("kafka", 40_000, 45_000)], &[]).published(60_000), 57_000);
        assert_eq!(ways(&[("redis", 50_000, 52_000)], &[]).published(60_000), 57_000);
        assert_eq!(ways(&[("redis", 50_000, 53_000)], &[]).published(60_000), 47_000);
    }

    #[test]
    fn nothing_is_published_while_nobody_leads_or_who_leads_is_struck() {
        let terms = [("scheduler-1", 10_000, 52_000), ("scheduler-2", 54_000, 90_000)];
        let struck = [("scheduler-1", 50_000, 55_000)];
        assert_eq!(ways(&struck, &terms).published(56_000), 47_000);
        assert_eq!(ways(&struck, &terms).published(60_000), 57_000);
    }

    #[test]
    fn an_order_waits_for_consumers_too() {
        assert_eq!(ways(&[], &[]).ordered(60_000), 54_000);
        assert_eq!(ways(&[("consumer-1", 45_000, 48_000)], &[]).ordered(60_000), 42_000);
    }
}
