//! The plan of faults. A seed always gives the same plan; which process leads when a fault is injected depends on the fleet.

mod data_loss;

use std::time::Duration;

use fastrand::Rng;

use crate::history::FaultKind;

/// A planned fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Delay after the previous fault.
    pub after: Duration,
    /// Duration.
    pub lasts: Duration,
    /// Kind.
    pub what: FaultKind,
    /// Target.
    pub target: Target,
}

/// The target of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The current leader.
    Leader,
    /// One of the schedulers.
    Scheduler(usize),
    /// One of the pods.
    Api(usize),
    /// One of the consumers.
    Consumer(usize),
    /// Redis.
    Redis,
    /// Kafka.
    Kafka,
}

/// Number of processes of a fleet.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Schedulers.
    pub schedulers: usize,
    /// RecordingClient.
    pub apis: usize,
    /// Consumers.
    pub consumers: usize,
}

/// Every other process fault hits the leader for longer than its lease, so that runs exercise the fence: the lease expires,
/// another leader is elected, and it admits. In ms.
const LEADER_FAULT_MS: std::ops::Range<u64> = 4_500..5_500;

/// Two parallel sequences of faults: processes with their connections to Redis; and the servers.
#[must_use]
pub fn plan(seed: u64, seconds: u64, size: Size) -> [Vec<Planned>; 2] {
    let mut rng = Rng::with_seed(seed);
    let members = sequence(&mut rng, seconds, (300, 1_500), |rng, nth| match nth % 8 {
        1 | 5 => (FaultKind::TrapAdmission, Target::Leader, rng.u64(LEADER_FAULT_MS)),
        3 => (FaultKind::Pause, Target::Leader, rng.u64(LEADER_FAULT_MS)),
        7 => (FaultKind::HoldReplies, Target::Leader, rng.u64(LEADER_FAULT_MS)),
        _ => process_fault(rng, size),
    });
    let servers = sequence(&mut rng, seconds, (6_000, 16_000), |rng, _| server_fault(rng));
    [members, data_loss::insert(servers, &mut rng, seconds)]
}

/// Only fail-overs: a master dies, its replica takes over, and the dead one comes back as a replica.
#[must_use]
pub fn fail_overs(seed: u64, seconds: u64) -> [Vec<Planned>; 2] {
    let mut rng = Rng::with_seed(seed);
    let servers = sequence(&mut rng, seconds, (10_000, 16_000), |rng, _| {
        (FaultKind::FailOver, Target::Redis, rng.u64(6_000..9_000))
    });
    [Vec::new(), servers]
}

fn sequence(
    rng: &mut Rng,
    seconds: u64,
    pause: (u64, u64),
    draw: impl Fn(&mut Rng, usize) -> (FaultKind, Target, u64),
) -> Vec<Planned> {
    let (mut all, mut at, end) = (Vec::new(), 0, seconds * 1_000);
    loop {
        let after = rng.u64(pause.0..pause.1);
        let (what, target, lasts) = draw(rng, all.len());
        at += after + lasts;
        if at > end {
            return all;
        }
        let (after, lasts) = (Duration::from_millis(after), Duration::from_millis(lasts));
        all.push(Planned { after, lasts, what, target });
    }
}

/// Half of the faults hit the leader.
fn process_fault(rng: &mut Rng, size: Size) -> (FaultKind, Target, u64) {
    use FaultKind::{Delay, HoldAll, HoldReplies, Kill, Pause, Reset, Stop};
    let target = match rng.u8(0..10) {
        0..5 => Target::Leader,
        5 => Target::Scheduler(rng.usize(0..size.schedulers)),
        6..8 => Target::Api(rng.usize(0..size.apis)),
        _ => Target::Consumer(rng.usize(0..size.consumers)),
    };
    let kinds = [
        Kill,
        Kill,
        Stop,
        Pause,
        Pause,
        Pause,
        Delay,
        Reset,
        HoldReplies,
        HoldReplies,
        HoldAll,
        HoldAll,
    ];
    let what = kinds[rng.usize(0..kinds.len())];
    (what, target, rng.u64(400..5_000))
}

fn server_fault(rng: &mut Rng) -> (FaultKind, Target, u64) {
    match rng.u8(0..6) {
        0..2 => (FaultKind::Pause, Target::Redis, rng.u64(200..4_000)),
        2..4 => (FaultKind::Kill, Target::Redis, rng.u64(100..3_000)),
        _ => (FaultKind::Kill, Target::Kafka, rng.u64(1_000..5_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { schedulers: 3, apis: 2, consumers: 2 };

    #[test]
    fn a_seed_gives_the_same_plan_and_another_seed_another_plan() {
        assert_eq!(plan(7, 180, SIZE), plan(7, 180, SIZE));
        assert_ne!(plan(7, 180, SIZE), plan(8, 180, SIZE));
    }

    #[test]
    fn a_plan_of_three_minutes_hits_the_leader_and_both_servers() {
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
    fn a_minute_has_two_or_three_fail_overs_and_no_other_fault() {
        for seed in 0..200 {
            let [members, servers] = fail_overs(seed, 60);
            assert!(members.is_empty() && (2..=3).contains(&servers.len()), "seed {seed}");
            assert!(servers.iter().all(|planned| planned.what == FaultKind::FailOver));
        }
    }

    #[test]
    fn every_seed_has_long_leader_faults_and_a_data_loss() {
        for seed in 0..200 {
            let [members, servers] = plan(seed, 60, SIZE);
            for (what, least) in
                [(FaultKind::TrapAdmission, 2), (FaultKind::Pause, 1), (FaultKind::HoldReplies, 1)]
            {
                let long = |planned: &&Planned| {
                    planned.what == what
                        && planned.lasts.as_millis() >= LEADER_FAULT_MS.start.into()
                };
                assert!(members.iter().filter(long).count() >= least, "seed {seed}: {what:?}");
            }
            let losses = |servers: &[Planned]| {
                servers.iter().filter(|planned| planned.what.loses_data()).count()
            };
            assert_eq!(losses(&servers), 1, "seed {seed}");
            assert_eq!(losses(&plan(seed, 180, SIZE)[1]), 3, "seed {seed}");
            assert_eq!(losses(&plan(seed, 15, SIZE)[1]), 0, "seed {seed}");
        }
    }
}
