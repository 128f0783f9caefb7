//! Many schedules, one after the other, each the same for its seed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use daegi_chaos::check;
use daegi_chaos::simulation::simulate;
use daegi_testkit::chance;

/// How long new seeds are tried, whatever the machine.
const ENOUGH: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_seed_brings_the_same_history_again() {
    assert_eq!(simulate(7), simulate(7));
    assert_ne!(simulate(7), simulate(8));
}

#[tokio::test]
async fn no_schedule_breaks_a_promise() {
    let (mut chance, began) = (chance("simulation"), Instant::now());
    let (mut schedules, mut let_in, mut terms) = (0_u32, 0, 0);
    while began.elapsed() < ENOUGH {
        let seed = chance.u64(..);
        let history = simulate(seed);
        let verdict = check::judge(&history).unwrap();
        assert!(verdict.is_clean(), "simulate({seed}): {verdict}");
        schedules += 1;
        let_in += history.told.len();
        let epochs = history.told.iter().filter_map(|told| told.epoch);
        terms += epochs.collect::<BTreeSet<_>>().len();
    }
    let each = |sum: usize| sum / schedules as usize;
    eprintln!("{schedules} schedules, each {} events and {} terms", each(let_in), each(terms));
    assert!(each(let_in) > 6 && each(terms) > 1, "nothing happens in them");
}
