//! The memory store is the specification: random histories run against it and against Redis, and
//! every reply and the final state must be the same. On the way the invariants of a fair line are
//! checked. A failing history shrinks to a small one.
//!
//! | file | what lives there |
//! |---|---|
//! | `history.rs` | what can happen, and how a history is made up |
//! | `world.rs` | runs one history against both stores |
//! | `fairness.rs` | the invariants |

mod fairness;
mod history;
mod world;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tokio::runtime::Runtime;

use self::world::World;
use crate::support::Setup;

/// How many random histories `make test` runs.
const HISTORIES: u32 = 500;

/// How many of them on the set-ups with many processes, where commands are the same and only
/// their way differs.
const HISTORIES_ELSEWHERE: u32 = 40;

#[test]
fn redis_agrees_with_the_specification_on_random_histories() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Some(server) = runtime.block_on(daegi_testkit::redis_or_loud()) {
        agrees(&runtime, &Setup::One(server), HISTORIES);
    }
}

/// Runs random histories against a set-up and the specification.
pub(crate) fn agrees_elsewhere(runtime: &Runtime, setup: &Setup) {
    agrees(runtime, setup, HISTORIES_ELSEWHERE);
}

fn agrees(runtime: &Runtime, setup: &Setup, histories: u32) {
    let config = Config {
        cases: histories,
        max_shrink_iters: 4000,
        failure_persistence: None,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&daegi_testkit::seed("random histories").to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&history::history(), |history| {
        let run = async {
            let mut world = World::new(setup).await;
            for (step, op) in history.iter().enumerate() {
                world.step(op).await.map_err(|wrong| format!("step {step}, {op:?}: {wrong}"))?;
            }
            world.finish().await.map_err(|wrong| format!("at the end: {wrong}"))
        };
        runtime.block_on(run).map_err(TestCaseError::fail)
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// The same for lines longer than one chunk, which random histories of a few people never reach.
#[tokio::test]
async fn redis_agrees_on_lines_longer_than_a_chunk() {
    use self::history::Op;
    let Some(server) = daegi_testkit::redis_or_loud().await else {
        return;
    };
    let setup = Setup::One(server);
    let mut world = World::new(&setup).await;
    let mut history = vec![Op::BeginTerm, Op::long_line()];
    history.extend(std::iter::repeat_n(Op::Crowd { item: 0, from: 0, count: 700 }, 1));
    history.push(Op::Crowd { item: 0, from: 500, count: 900 });
    for _ in 0..3 {
        history.push(Op::Admit { item: 0, quota: 600, spacing: 0, outbox_max: 1000, stale: false });
        history.push(Op::Admit {
            item: 0,
            quota: 2,
            spacing: 0,
            outbox_max: 1_000_000,
            stale: false,
        });
    }
    history.push(Op::Advance { ms: 61_000 });
    history.push(Op::MarkAll { item: 0, every: 3 });
    for _ in 0..4 {
        history.push(Op::Advance { ms: 120_000 });
        history.push(Op::Sweep { item: 0, stale: false });
        history.push(Op::Admit {
            item: 0,
            quota: 600,
            spacing: 0,
            outbox_max: 1_000_000,
            stale: false,
        });
        history.push(Op::Expire { item: 0, stale: false });
        history.push(Op::Expire { item: 0, stale: false });
        history.push(Op::Snapshot { item: 0 });
    }
    for (step, op) in history.iter().enumerate() {
        world.step(op).await.unwrap_or_else(|wrong| panic!("step {step}, {op:?}: {wrong}"));
    }
    world.finish().await.unwrap();
}
