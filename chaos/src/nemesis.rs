//! Which faults a seed brings, and when. The same seed brings the same plan; which process leads
//! when it is carried out is up to the fleet.

mod losses;

use std::time::Duration;

use fastrand::Rng;

use crate::history::FaultKind;

/// A fault to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// How long after the one before it.
    pub after: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// What is done.
    pub what: FaultKind,
    /// To whom.
    pub target: Target,
}

/// Whom a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Whichever scheduler leads.
    Leader,
    /// One of the schedulers.
    Scheduler(usize),
    /// One of the pods.
    Api(usize),
    /// One of the consumers.
    Consumer(usize),
    /// The store.
    Redis,
    /// The broker.
    Kafka,
}

/// How large a fleet is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Schedulers.
    pub schedulers: usize,
    /// Pods.
    pub apis: usize,
    /// Consumers.
    pub consumers: usize,
}

/// Every other fault of processes strikes the leader for longer than its lease, whatever chance says:
/// a fence is worth something only where somebody runs into it. Long enough for the lease to run out,
/// for another one to lead, and for that one to let people in.
const AMBUSH: std::ops::Range<u64> = 4_500..5_500;

/// Two sequences of faults side by side, each long enough: processes and their ways to Redis; and
/// what they all depend on.
#[must_use]
pub fn plan(seed: u64, seconds: u64, size: Size) -> [Vec<Planned>; 2] {
    let mut chance = Rng::with_seed(seed);
    let members = sequence(&mut chance, seconds, (300, 1_500), |chance, nth| match nth % 8 {
        1 | 5 => (FaultKind::Snare, Target::Leader, chance.u64(AMBUSH)),
        3 => (FaultKind::Pause, Target::Leader, chance.u64(AMBUSH)),
        7 => (FaultKind::Deaf, Target::Leader, chance.u64(AMBUSH)),
        _ => member(chance, size),
    });
    let servers = sequence(&mut chance, seconds, (6_000, 16_000), |chance, _| server(chance));
    [members, losses::among(servers, &mut chance, seconds)]
}

/// A master dies, its replica takes over, and whoever died comes back as the replica: nothing else, so
/// that all that people feel is that.
#[must_use]
pub fn fail_overs(seed: u64, seconds: u64) -> [Vec<Planned>; 2] {
    let mut chance = Rng::with_seed(seed);
    let servers = sequence(&mut chance, seconds, (10_000, 16_000), |chance, _| {
        (FaultKind::FailOver, Target::Redis, chance.u64(6_000..9_000))
    });
    [Vec::new(), servers]
}

fn sequence(
    chance: &mut Rng,
    seconds: u64,
    pause: (u64, u64),
    draw: impl Fn(&mut Rng, usize) -> (FaultKind, Target, u64),
) -> Vec<Planned> {
    let (mut all, mut at, end) = (Vec::new(), 0, seconds * 1_000);
    loop {
        let after = chance.u64(pause.0..pause.1);
        let (what, target, lasts) = draw(chance, all.len());
        at += after + lasts;
        if at > end {
            return all;
        }
        let (after, lasts) = (Duration::from_millis(after), Duration::from_millis(lasts));
        all.push(Planned { after, lasts, what, target });
    }
}

/// The leader is hit as often as all others together.
fn member(chance: &mut Rng, size: Size) -> (FaultKind, Target, u64) {
    use FaultKind::{Cut, Dead, Deaf, Kill, Pause, Slow, Stop};
    let target = match chance.u8(0..10) {
        0..5 => Target::Leader,
        5 => Target::Scheduler(chance.usize(0..size.schedulers)),
        6..8 => Target::Api(chance.usize(0..size.apis)),
        _ => Target::Consumer(chance.usize(0..size.consumers)),
    };
    let kinds = [Kill, Kill, Stop, Pause, Pause, Pause, Slow, Cut, Deaf, Deaf, Dead, Dead];
    let what = kinds[chance.usize(0..kinds.len())];
    (what, target, chance.u64(400..5_000))
}

fn server(chance: &mut Rng) -> (FaultKind, Target, u64) {
    match chance.u8(0..6) {
        0..2 => (FaultKind::Pause, Target::Redis, chance.u64(200..4_000)),
        2..4 => (FaultKind::Kill, Target::Redis, chance.u64(100..3_000)),
        _ => (FaultKind::Kill, Target::Kafka, chance.u64(1_000..5_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { schedulers: 3, apis: 2, consumers: 2 };

    #[test]
    fn a_seed_brings_the_same_faults_again_and_another_one_others() {
        assert_eq!(plan(7, 180, SIZE), plan(7, 180, SIZE));
        assert_ne!(plan(7, 180, SIZE), plan(8, 180, SIZE));
    }

    #[test]
    fn three_minutes_bring_every_kind_of_fault_to_the_leader_and_both_servers() {
        let [members, servers] = plan(1, 180, SIZE);
        let of_leader = members.iter().filter(|planned| planned.target == Target::Leader);
        assert!(of_leader.count() > 8);
        for target in [Target::Redis, Target::Kafka] {
            assert!(servers.iter().any(|planned| planned.target == target), "{target:?}");
        }
        let total: Duration = members.iter().map(|planned| planned.after + planned.lasts).sum();
        assert!(total <= Duration::from_secs(180));
    }

    #[test]
    fn a_minute_brings_two_fail_overs_or_three_and_nothing_else() {
        for seed in 0..200 {
            let [members, servers] = fail_overs(seed, 60);
            assert!(members.is_empty() && (2..=3).contains(&servers.len()), "seed {seed}");
            assert!(servers.iter().all(|planned| planned.what == FaultKind::FailOver));
        }
    }

    #[test]
    fn whatever_the_seed_leaders_are_ambushed_and_redis_loses_everything() {
        for seed in 0..200 {
            let [members, servers] = plan(seed, 60, SIZE);
            for (what, least) in
                [(FaultKind::Snare, 2), (FaultKind::Pause, 1), (FaultKind::Deaf, 1)]
            {
                let long = |planned: &&Planned| {
                    planned.what == what && planned.lasts.as_millis() >= AMBUSH.start.into()
                };
                assert!(members.iter().filter(long).count() >= least, "seed {seed}: {what:?}");
            }
            let losses =
                |servers: &[Planned]| servers.iter().filter(|planned| planned.what.loses()).count();
            assert_eq!(losses(&servers), 1, "seed {seed}");
            assert_eq!(losses(&plan(seed, 180, SIZE)[1]), 3, "seed {seed}");
            assert_eq!(losses(&plan(seed, 15, SIZE)[1]), 0, "seed {seed}");
        }
    }
}
