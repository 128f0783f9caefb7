//! Runs a fleet with users and a nemesis, and records a history.

pub(crate) mod arrival;
pub(crate) mod client;
mod event_collector;
mod faults;
pub(crate) mod fleet;
mod invitations;
pub(crate) mod items;
mod load;
mod openings;
mod product_service;
pub(crate) mod recorder;
pub(crate) mod redis;
mod response;
mod stall_detector;
mod terms;
pub(crate) mod virtual_user;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use daegi_testkit::Kafka;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::history::{Entry, Setup};
use crate::nemesis;
use fleet::ChaosFleet;
pub use fleet::SIZE;
use openings::Openings;
use recorder::{Recorder, now};
pub use redis::{RedisUnderTest, Topology};

/// Limit for admitting all users and emptying the outbox after the last fault.
const CALM_TIMEOUT: Duration = Duration::from_secs(120);

/// Options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Reproduces the same faults and users.
    pub seed: u64,
    /// Duration of the faults in seconds.
    pub seconds: u64,
    /// Number of users.
    pub people: usize,
    /// Output directory of history and logs.
    pub out: PathBuf,
}

/// Runs on an empty Redis and an empty broker, and returns the path of the history. With replicas, fail-overs are the only
/// faults.
///
/// # Errors
/// If the fleet cannot be started or the history cannot be written.
pub async fn run(
    options: &Options,
    redis: RedisUnderTest,
    kafka: Kafka,
) -> anyhow::Result<PathBuf> {
    let path = options.out.join("history.jsonl");
    let logs = options.out.join("logs");
    // Terms are read from logs, so logs of an earlier run must not remain.
    if logs.exists() {
        std::fs::remove_dir_all(&logs)?;
    }
    std::fs::create_dir_all(&logs)?;
    let recorder = Arc::new(Recorder::create(&path)?);
    let plan = match redis.single() {
        Some(_) => nemesis::plan(options.seed, options.seconds, fleet::SIZE),
        None => nemesis::fail_overs(options.seed, options.seconds),
    };
    let fleet = Arc::new(ChaosFleet::start(redis, kafka, &logs).await?);
    let mut items = fleet.put_items(&items::ITEM_KINDS).await?;
    let codes =
        invitations::create(&fleet, &items, options.people / items.len(), &recorder).await?;
    let openings = Openings::new(options.seconds);
    let events = event_collector::start(&fleet.brokers().await, recorder.clone()).await?;

    let (from, began) = (now(), Instant::now());
    let fault_time = Duration::from_secs(options.seconds);
    let deadline = began + fault_time + CALM_TIMEOUT;
    let product =
        product_service::publish_items(&fleet, options.seed, began + fault_time, recorder.clone());
    let (guests, to) = ((&openings, codes), recorder.clone());
    let users = load::UserLoad::start(&fleet, options, deadline, guests, to).await?;
    let unaffected_node = fleet.redis.lock().await.unaffected_node().await?;
    let nemesis = async {
        let end = began + fault_time;
        faults::inject_all(&fleet, plan, end, &recorder).await?;
        tokio::time::sleep_until(end).await;
        let calm = now();
        fleet.restore_all().await;
        anyhow::Ok(calm)
    };
    let run = async {
        let opened = openings.run(&fleet, began, &recorder);
        let (calm, version, opened) = tokio::try_join!(nemesis, product, opened)?;
        users.join_all().await?;
        fleet.wait_until_idle(&items, version, deadline).await;
        let (planned, mut readers) = opened;
        readers.shutdown().await;
        anyhow::Ok((calm, planned))
    };
    // A separate task, because faults block this one while a process ends.
    let mut tasks = JoinSet::new();
    tasks.spawn(stall_detector::run(fleet.clone(), unaffected_node, recorder.clone()));
    let (calm, planned) = run.await?;
    tasks.shutdown().await;
    events.wait_for_all().await?;
    for end in fleet.finals(&items).await? {
        recorder.write(&Entry::Final(end));
    }

    for item in &mut items {
        let opening = planned.iter().find(|(id, _)| *id == item.item);
        item.opening = opening.map(|(_, opening)| opening.clone());
    }
    let setup = Setup {
        seed: options.seed,
        from,
        calm_from: calm,
        to: now(),
        lease: fleet::LEASE,
        max_staleness: Setup::default_max_staleness(),
        max_delivery: Setup::default_max_delivery(),
        clock_skew: 0,
        users: options.people as u64,
        items,
    };
    terms::read(&fleet, setup.to, &recorder).await?;
    recorder.write(&Entry::Setup(setup));
    recorder.finish()?;
    stop_processes(fleet).await;
    Ok(path)
}

/// Stops all processes before the verdict is printed.
async fn stop_processes(fleet: Arc<ChaosFleet>) {
    if let Some(fleet) = Arc::into_inner(fleet) {
        tokio::task::block_in_place(|| drop(fleet));
    }
}

/// The path of the timeline of a history.
#[must_use]
pub fn timeline_path(history: &Path) -> PathBuf {
    history.with_extension("svg")
}
