//! A handler that records what it applies, and the consumer that runs it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use daegi_domain::Topic;
use daegi_kafka::{
    Consumer, ConsumerConfig, InboundMessage, MessageHandler, PartialFailure, Poison, Record,
    ReplayProgress, RetryLater,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::broker::{Broker, TEST_TIMEOUT};

/// Records every body. "bad…" is poison, "stuck" must be retried, and a limit bounds how many bodies it
/// applies.
#[derive(Debug, Clone)]
pub(crate) struct RecordingHandler {
    pub(crate) bodies: Arc<Mutex<Vec<String>>>,
    room: Arc<AtomicUsize>,
    refused: Arc<AtomicBool>,
    /// Whether "stuck" is applied.
    unstuck: Arc<AtomicBool>,
    /// From when a replay reads, in unix milliseconds.
    since: Option<u64>,
    /// Partitions whose replay has started, and whether it is complete.
    complete: Arc<Mutex<BTreeMap<i32, bool>>>,
}

impl RecordingHandler {
    /// A handler that has applied nothing yet.
    pub(crate) fn new() -> Self {
        Self {
            bodies: Arc::default(),
            room: Arc::new(AtomicUsize::new(usize::MAX)),
            refused: Arc::default(),
            unstuck: Arc::default(),
            since: None,
            complete: Arc::default(),
        }
    }

    /// The same; replays start at this time.
    pub(crate) fn since(since: u64) -> Self {
        Self { since: Some(since), ..Self::new() }
    }

    /// Sets how many bodies it applies in all.
    pub(crate) fn limit(&self, room: usize) {
        self.refused.store(false, Ordering::SeqCst);
        self.room.store(room, Ordering::SeqCst);
    }

    /// From now on "stuck" is applied.
    pub(crate) fn unstick(&self) {
        self.unstuck.store(true, Ordering::SeqCst);
    }

    /// Whether a body was applied.
    pub(crate) fn has(&self, body: &str) -> bool {
        self.bodies.lock().unwrap().iter().any(|applied| applied == body)
    }

    /// The bodies with this prefix, in the order in which they were applied.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Vec<String> {
        let bodies = self.bodies.lock().unwrap();
        bodies.iter().filter(|body| body.starts_with(prefix)).cloned().collect()
    }

    /// Whether an attempt failed, because of the limit or "stuck".
    pub(crate) fn has_failed(&self) -> bool {
        self.refused.load(Ordering::SeqCst)
    }

    pub(crate) fn count(&self) -> usize {
        self.bodies.lock().unwrap().len()
    }

    /// A handler whose replays are complete.
    pub(crate) fn complete() -> Self {
        let complete = (0..16).map(|partition| (partition, true)).collect();
        Self { complete: Arc::new(Mutex::new(complete)), ..Self::new() }
    }

    pub(crate) fn is_complete(&self) -> bool {
        let complete = self.complete.lock().unwrap();
        !complete.is_empty() && complete.values().all(|complete| *complete)
    }

    /// Loses what was applied, and the replay progress.
    pub(crate) fn lose_everything(&self) {
        self.bodies.lock().unwrap().clear();
        self.complete.lock().unwrap().clear();
    }
}

impl MessageHandler for RecordingHandler {
    const TOPIC: Topic = Topic::ItemChanged;

    type Command = String;

    fn decode(&self, message: &InboundMessage<'_>) -> Result<String, Poison> {
        let body = String::from_utf8(message.body.unwrap().to_vec()).unwrap();
        if body.starts_with("bad") {
            let quoted: String = body.chars().take(20).collect();
            return Err(Poison(format!("{quoted} is bad")));
        }
        Ok(body)
    }

    async fn apply(&self, commands: &[String]) -> Result<(), PartialFailure> {
        for (applied, body) in commands.iter().enumerate() {
            let mut bodies = self.bodies.lock().unwrap();
            if bodies.len() >= self.room.load(Ordering::SeqCst) {
                self.refused.store(true, Ordering::SeqCst);
                return Err(PartialFailure { applied, cause: RetryLater("limit reached".into()) });
            }
            if body == "stuck" && !self.unstuck.load(Ordering::SeqCst) {
                self.refused.store(true, Ordering::SeqCst);
                return Err(PartialFailure { applied, cause: RetryLater("stuck".into()) });
            }
            bodies.push(body.clone());
        }
        Ok(())
    }

    fn replay_from(&self) -> Option<u64> {
        self.since
    }

    async fn replay_progress(&self, partition: i32) -> Result<ReplayProgress, RetryLater> {
        Ok(match self.complete.lock().unwrap().get(&partition) {
            None => ReplayProgress::NotStarted,
            Some(false) => ReplayProgress::InProgress,
            Some(true) => ReplayProgress::Complete,
        })
    }

    async fn begin_replay(&self, partition: i32) -> Result<(), RetryLater> {
        self.complete.lock().unwrap().insert(partition, false);
        Ok(())
    }

    async fn complete_replay(&self, partition: i32) -> Result<(), RetryLater> {
        // A start that was lost meanwhile must not be recorded as complete.
        if let Some(complete) = self.complete.lock().unwrap().get_mut(&partition) {
            *complete = true;
        }
        Ok(())
    }
}

/// A running consumer; `stop` asserts that all its tasks end.
pub(crate) struct Running {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    pub(crate) fn start(broker: &Broker, handler: &RecordingHandler) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let config = ConsumerConfig {
            brokers: broker.brokers.clone(),
            topics: broker.topics.clone(),
            group: format!("group of {}", broker.topics.name(Topic::ItemChanged)),
        };
        let consumer = Consumer::new(config, handler.clone()).unwrap();
        tasks.spawn(consumer.run(stop.clone()));
        tasks.close();
        Self { stop, tasks }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(TEST_TIMEOUT, self.tasks.wait()).await.unwrap();
    }
}

pub(crate) async fn publish(broker: &Broker, bodies: &[String]) {
    let topic = broker.topics.name(Topic::ItemChanged);
    let record = |body: &String| Record::raw(topic, "concert", Some(body.as_bytes()));
    let records: Vec<_> = bodies.iter().map(record).collect();
    broker.publisher().publish(&records).await.unwrap();
}
