//! Model test: the memory store is the specification. Random histories run against it and against Redis;
//! every reply and the final state must be equal. After each step the invariants of a fair line are checked.
//! A failing history is shrunk.
//!
//! | file | contents |
//! |---|---|
//! | `history.rs` | the operations, and the generator of histories |
//! | `harness.rs` | runs one history against both stores |
//! | `fairness.rs` | the invariants |

mod fairness;
mod harness;
mod history;

use std::time::{Duration, Instant};

use daegi_domain::Lane;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tokio::runtime::Runtime;

use self::harness::ModelHarness;
use self::history::Mix;
use crate::support::Topology;

/// How many random histories `make test` runs.
const HISTORIES: u32 = 500;

/// How many of them run on Sentinel and Cluster, where the scripts are the same and only their route differs.
const HISTORIES_ON_OTHER_TOPOLOGIES: u32 = 40;

/// In `make test` long histories are rare, because one takes as long as 20 short ones.
const TEST_MIX: Mix = Mix { short: 49, long: 1 };

/// In `make histories` both scales take about the same time.
const SEARCH_MIX: Mix = Mix { short: 20, long: 1 };

/// Seeds that have failed, one per line; `#` begins a comment.
const REGRESSIONS: &str = include_str!("model/regressions.txt");

/// Runs histories of a fixed seed, or of new seeds for `DAEGI_HISTORIES_SECONDS` (`make histories`).
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the duration of a test is not configuration of daegi"
)]
fn redis_agrees_with_the_specification_on_random_histories() {
    let runtime = Runtime::new().unwrap();
    let Some(server) = runtime.block_on(daegi_testkit::redis_or_skip()) else { return };
    let topology = Topology::One(server);
    match std::env::var("DAEGI_HISTORIES_SECONDS") {
        Ok(seconds) => search(&runtime, &topology, Duration::from_secs(seconds.parse().unwrap())),
        Err(_) => {
            let seed = daegi_testkit::test_seed("random histories");
            let agreed = agrees(&runtime, &topology, HISTORIES, TEST_MIX, seed);
            agreed.unwrap_or_else(|failure| panic!("{failure}"));
        }
    }
}

#[test]
fn redis_agrees_on_histories_that_have_failed() {
    let runtime = Runtime::new().unwrap();
    let Some(server) = runtime.block_on(daegi_testkit::redis_or_skip()) else { return };
    let topology = Topology::One(server);
    let lines = REGRESSIONS.lines().filter_map(|line| line.split('#').next());
    for seed in lines.map(str::trim).filter(|seed| !seed.is_empty()) {
        let seed: u64 = seed.parse().unwrap();
        let agreed = agrees(&runtime, &topology, 1, SEARCH_MIX, seed);
        agreed.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

/// Runs histories of new seeds for `duration`, and fails with the first seed on which the stores differ.
#[expect(clippy::print_stderr, reason = "a failure needs its seed")]
fn search(runtime: &Runtime, topology: &Topology, duration: Duration) {
    let started = Instant::now();
    let mut histories = 0;
    while started.elapsed() < duration {
        let seed = fastrand::u64(..);
        eprintln!("history {histories}: seed {seed}");
        if let Err(failure) = agrees(runtime, topology, 1, SEARCH_MIX, seed) {
            panic!("add {seed} to crates/store/tests/it/model/regressions.txt\n{failure}");
        }
        histories += 1;
    }
    eprintln!("{histories} histories in {} s", started.elapsed().as_secs());
}

/// Runs random histories against a topology and the specification.
pub(crate) fn agrees_on_other_topology(runtime: &Runtime, topology: &Topology) {
    let seed = daegi_testkit::test_seed("random histories");
    let agreed = agrees(runtime, topology, HISTORIES_ON_OTHER_TOPOLOGIES, TEST_MIX, seed);
    agreed.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Returns the shrunk history of the first failure.
fn agrees(
    runtime: &Runtime,
    topology: &Topology,
    histories: u32,
    mix: Mix,
    seed: u64,
) -> Result<(), String> {
    let config = Config {
        cases: histories,
        max_shrink_iters: 4000,
        // A history takes up to a second, so that the iterations alone could take an hour.
        max_shrink_time: 60_000,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&history::history(mix), |history| {
        let run = async {
            let mut harness = ModelHarness::new(topology).await;
            for (step, op) in history.iter().enumerate() {
                let done = harness.step(op).await;
                done.map_err(|violation| format!("step {step}, {op:?}: {violation}"))?;
            }
            harness.finish().await.map_err(|violation| format!("at the end: {violation}"))
        };
        runtime.block_on(run).map_err(TestCaseError::fail)
    });
    outcome.map_err(|failure| failure.to_string())
}

/// A history whose line is longer than several batches.
#[tokio::test]
async fn redis_agrees_on_lines_longer_than_a_batch() {
    use self::history::Op;
    let Some(server) = daegi_testkit::redis_or_skip().await else {
        return;
    };
    let topology = Topology::One(server);
    let mut harness = ModelHarness::new(&topology).await;
    let mut history = vec![Op::BeginTerm, Op::long_line()];
    history.extend(std::iter::repeat_n(Op::JoinMany { item: 0, from: 0, count: 700 }, 1));
    history.push(Op::JoinMany { item: 0, from: 500, count: 900 });
    for _ in 0..3 {
        history.push(Op::Admit {
            item: 0,
            quota: 600,
            min_interval: 0,
            outbox_max: 1000,
            stale: false,
        });
        history.push(Op::Admit {
            item: 0,
            quota: 2,
            min_interval: 0,
            outbox_max: 1_000_000,
            stale: false,
        });
    }
    history.push(Op::Advance { ms: 61_000 });
    history.push(Op::MarkAll { item: 0, every: 3 });
    for _ in 0..4 {
        history.push(Op::Advance { ms: 120_000 });
        history.push(Op::Sweep { item: 0, lane: Lane::STANDARD, stale: false });
        history.push(Op::Admit {
            item: 0,
            quota: 600,
            min_interval: 0,
            outbox_max: 1_000_000,
            stale: false,
        });
        history.push(Op::Expire { item: 0, lane: Lane::STANDARD, stale: false });
        history.push(Op::Expire { item: 0, lane: Lane::STANDARD, stale: false });
        history.push(Op::Snapshot { item: 0, lane: Lane::STANDARD });
    }
    for (step, op) in history.iter().enumerate() {
        harness
            .step(op)
            .await
            .unwrap_or_else(|violation| panic!("step {step}, {op:?}: {violation}"));
    }
    harness.finish().await.unwrap();
}
