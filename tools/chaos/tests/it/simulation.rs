//! Many simulated schedules on every core, reproducible by seed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use daegi_chaos::checker;
use daegi_chaos::simulation::simulate;
use daegi_testkit::test_seed;

/// Duration of the test.
const SIMULATION_TIME: Duration = Duration::from_secs(5);

/// Totals of all schedules.
#[derive(Debug, Default)]
struct Totals {
    schedules: usize,
    events: usize,
    terms: usize,
    losses: usize,
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        self.events += other.events;
        self.terms += other.terms;
        self.losses += other.losses;
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
}

/// Simulates one schedule and checks it.
fn simulate_and_check(seed: u64) -> Totals {
    let history = simulate(seed);
    match checker::judge(&history) {
        Ok(verdict) => assert!(verdict.is_clean(), "simulate({seed}): {verdict}"),
        Err(error) => panic!("simulate({seed}): {error}"),
    }
    let epochs = history.events.iter().filter_map(|event| event.epoch);
    let terms = epochs.collect::<BTreeSet<_>>().len();
    let losses = history.faults.len();
    Totals { schedules: 1, events: history.events.len(), terms, losses }
}
