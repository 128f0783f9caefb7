//! Many simulated schedules on every core, reproducible by seed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use daegi_chaos::history::{FaultKind, Millis};
use daegi_chaos::simulation::{simulate, simulate_opening};
use daegi_chaos::{History, checker};
use daegi_testkit::test_seed;

/// Duration of the test.
const SIMULATION_TIME: Duration = Duration::from_secs(5);

/// Histories of the test in which leaders die at an opening. Each has two draws and an opening in order of arrival.
const OPENINGS: u64 = 200;

/// Totals of all schedules.
#[derive(Debug, Default)]
struct Totals {
    schedules: usize,
    events: usize,
    terms: usize,
    losses: usize,
    openings: usize,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        self.events += other.events;
        self.terms += other.terms;
        self.losses += other.losses;
        self.openings += other.openings;
    }
}

/// Some futures require a timer although none waits for it.
fn with_timer<T>(work: impl FnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let _entered = runtime.as_ref().map(tokio::runtime::Runtime::enter);
    work()
}

#[tokio::test]
async fn a_seed_gives_the_same_history() {
    assert_eq!(simulate(7), simulate(7));
    assert_ne!(simulate(7), simulate(8));
}

#[test]
fn no_schedule_violates_a_rule() {
    let (first, next) = (test_seed("simulation"), AtomicU64::new(0));
    let one = || first.wrapping_add(next.fetch_add(1, Ordering::Relaxed));
    let began = Instant::now();
    let all = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores)
            .map(|_| {
                scope.spawn(|| {
                    with_timer(|| {
                        let mut totals = Totals::default();
                        while began.elapsed() < SIMULATION_TIME {
                            totals.add(&simulate_and_check(one()));
                        }
                        totals
                    })
                })
            })
            .collect();
        let mut all = Totals::default();
        threads.into_iter().for_each(|thread| all.add(&thread.join().unwrap()));
        all
    });
    let per_second = all.schedules as u128 * 1_000 / began.elapsed().as_millis();
    eprintln!("{per_second} schedules per second: {all:?}");
    let each = |sum: usize| sum / all.schedules;
    assert!(each(all.events) > 6 && each(all.terms) > 1, "too few events or terms");
    assert!(all.losses > all.schedules / 4, "too few data losses");
    assert!(all.openings > all.schedules / 2, "too few openings");
}

/// The leader dies before or after each step of the opening in turn, at least once in the second after the time of the
/// opening by the clock of the users.
#[test]
fn a_leader_that_dies_in_the_second_of_an_opening_leaves_one_opening_and_one_seed() {
    let first = test_seed("openings");
    let died = (0..OPENINGS).filter(|number| {
        let seed = first.wrapping_add(*number);
        let history = with_timer(|| simulate_opening(seed));
        check(seed, &history);
        let setup = history.setup.as_ref().unwrap();
        for item in &setup.items {
            let opening = item.opening.as_ref().unwrap();
            let of_item = history.openings.iter().filter(|opening| opening.item == item.item);
            let openings: BTreeSet<_> = of_item.map(|opening| (&opening.id, opening.at)).collect();
            assert_eq!(openings.len(), 1, "simulate_opening({seed}): {}", item.item);
            let seeds = history.openings.iter().filter(|opening| opening.item == item.item);
            let seeds: BTreeSet<_> =
                seeds.filter_map(|opening| opening.draw.as_ref()?.seed.as_ref()).collect();
            assert_eq!(seeds.len(), usize::from(opening.is_draw), "simulate_opening({seed})");
        }
        let opens_at = setup.items.iter().map(|item| item.opening.as_ref().unwrap().opens_at);
        opens_at.into_iter().any(|opens_at| died_within_a_second(&history, opens_at))
    });
    let died = died.count();
    eprintln!("{died} of {OPENINGS} openings with a leader that died");
    assert!(died >= 50, "too few deaths of leaders");
}

fn died_within_a_second(history: &History, opens_at: Millis) -> bool {
    let deaths = history.faults.iter().filter(|fault| fault.what == FaultKind::Kill);
    deaths.into_iter().any(|death| death.from.abs_diff(opens_at) <= 1_000)
}

fn check(seed: u64, history: &History) {
    match checker::judge(history) {
        Ok(verdict) => assert!(verdict.is_clean(), "seed {seed}: {verdict}"),
        Err(error) => panic!("seed {seed}: {error}"),
    }
}

/// Simulates one schedule and checks it.
fn simulate_and_check(seed: u64) -> Totals {
    let history = simulate(seed);
    check(seed, &history);
    let epochs = history.events.iter().filter_map(|event| event.epoch);
    let terms = epochs.collect::<BTreeSet<_>>().len();
    let losses = history.faults.iter().filter(|fault| fault.what.loses_data()).count();
    let (events, openings) = (history.events.len(), history.openings.len());
    Totals { schedules: 1, events, terms, losses, openings }
}
