//! Many schedules, one after the other on every core, each the same for its seed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use daegi_chaos::check;
use daegi_chaos::simulation::simulate;
use daegi_testkit::seed;

/// How long new seeds are tried, whatever the machine.
const ENOUGH: Duration = Duration::from_secs(5);

/// What happened in many schedules.
#[derive(Debug, Default)]
struct Tally {
    schedules: usize,
    events: usize,
    terms: usize,
    losses: usize,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        self.events += other.events;
        self.terms += other.terms;
        self.losses += other.losses;
    }
}

/// Some futures want to see a timer, though none waits for it.
fn with_timer<T>(work: impl FnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _entered = runtime.enter();
    work()
}

#[tokio::test]
async fn a_seed_brings_the_same_history_again() {
    assert_eq!(simulate(7), simulate(7));
    assert_ne!(simulate(7), simulate(8));
}

#[test]
fn no_schedule_breaks_a_promise() {
    let (first, next) = (seed("simulation"), AtomicU64::new(0));
    let one = || first.wrapping_add(next.fetch_add(1, Ordering::Relaxed));
    let began = Instant::now();
    let all = thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores)
            .map(|_| {
                scope.spawn(|| {
                    with_timer(|| {
                        let mut tally = Tally::default();
                        while began.elapsed() < ENOUGH {
                            tally.add(&try_out(one()));
                        }
                        tally
                    })
                })
            })
            .collect();
        let mut all = Tally::default();
        threads.into_iter().for_each(|thread| all.add(&thread.join().unwrap()));
        all
    });
    let per_second = all.schedules as u128 * 1_000 / began.elapsed().as_millis();
    eprintln!("{per_second} schedules per second: {all:?}");
    let each = |sum: usize| sum / all.schedules;
    assert!(each(all.events) > 6 && each(all.terms) > 1, "nothing happens in them");
    assert!(all.losses > all.schedules / 4, "hardly anything is lost");
}

/// Simulates and judges one.
fn try_out(seed: u64) -> Tally {
    let history = simulate(seed);
    let verdict = check::judge(&history).unwrap();
    assert!(verdict.is_clean(), "simulate({seed}): {verdict}");
    let epochs = history.told.iter().filter_map(|told| told.epoch);
    let terms = epochs.collect::<BTreeSet<_>>().len();
    let losses = history.faults.len();
    Tally { schedules: 1, events: history.told.len(), terms, losses }
}
