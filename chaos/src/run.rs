//! Makes a history: a fleet, the people in front of it, and a nemesis.

mod answer;
pub(crate) mod catalogue;
mod crowd;
mod ears;
mod faults;
pub(crate) mod person;
pub(crate) mod pods;
mod product;
pub(crate) mod recorder;
pub(crate) mod servers;
pub(crate) mod stage;
mod terms;
mod witness;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use daegi_testkit::Kafka;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::history::{Entry, Setup};
use crate::nemesis;
use recorder::{Recorder, now};
pub use servers::{Servers, Shape};
pub use stage::SIZE;
use stage::Stage;

/// How long people have to be served once all is well again, and the outbox to be empty.
const CALM: Duration = Duration::from_secs(120);

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Brings the same faults and the same people again.
    pub seed: u64,
    /// How long faults go on.
    pub seconds: u64,
    /// How many people come.
    pub people: usize,
    /// Where the history goes, and what processes say.
    pub out: PathBuf,
}

/// Runs it on Redis and a broker, both empty, and returns where the history is. Where a replica can
/// take over from a master, that is what happens, and nothing else.
///
/// # Errors
/// If the fleet cannot be started, or the history not be written.
pub async fn run(options: &Options, redis: Servers, kafka: Kafka) -> anyhow::Result<PathBuf> {
    let path = options.out.join("history.jsonl");
    let logs = options.out.join("logs");
    // Terms are read from logs; those of an earlier run would be taken for terms of this one.
    if logs.exists() {
        std::fs::remove_dir_all(&logs)?;
    }
    std::fs::create_dir_all(&logs)?;
    let recorder = Arc::new(Recorder::create(&path)?);
    let plan = match redis.alone() {
        Some(_) => nemesis::plan(options.seed, options.seconds, stage::SIZE),
        None => nemesis::fail_overs(options.seed, options.seconds),
    };
    let stage = Arc::new(Stage::open(redis, kafka, &logs).await?);
    let items = stage.put_items(&catalogue::KINDS).await?;
    let ears = ears::listen(&stage.brokers().await, recorder.clone()).await?;

    let (from, began) = (now(), Instant::now());
    let trouble = Duration::from_secs(options.seconds);
    let deadline = began + trouble + CALM;
    let product = product::announce(&stage, options.seed, began + trouble, recorder.clone());
    let crowd = crowd::Crowd::come(&stage, options, deadline, recorder.clone()).await?;
    let bystander = stage.redis.lock().await.bystander().await?;
    let nemesis = async {
        let end = began + trouble;
        faults::bring(&stage, plan, end, &recorder).await?;
        tokio::time::sleep_until(end).await;
        let calm = now();
        stage.heal().await;
        anyhow::Ok(calm)
    };
    let life = async {
        let (calm, version) = tokio::try_join!(nemesis, product)?;
        crowd.served().await?;
        stage.settle(&items, version, deadline).await;
        anyhow::Ok(calm)
    };
    // A task of its own: it must not stand still with whoever waits for a process to end.
    let mut watching = JoinSet::new();
    watching.spawn(witness::watch(stage.clone(), bystander, recorder.clone()));
    let calm = life.await?;
    watching.shutdown().await;
    ears.heard_all().await?;
    for end in stage.finals(&items).await? {
        recorder.write(&Entry::Final(end));
    }

    let setup = Setup {
        seed: options.seed,
        from,
        calm,
        to: now(),
        lease: stage::LEASE,
        old_news: Setup::usual_old_news(),
        on_its_way: Setup::usual_way(),
        people: options.people as u64,
        items,
    };
    terms::read(&stage, setup.to, &recorder).await?;
    recorder.write(&Entry::Setup(setup));
    recorder.finish()?;
    keep_nothing_running(stage).await;
    Ok(path)
}

/// Ends every process before the verdict is told.
async fn keep_nothing_running(stage: Arc<Stage>) {
    if let Some(stage) = Arc::into_inner(stage) {
        tokio::task::block_in_place(|| drop(stage));
    }
}

/// Where a history's picture goes.
#[must_use]
pub fn picture_of(history: &Path) -> PathBuf {
    history.with_extension("svg")
}
