//! Somebody who notes what it reads, and the consumer that brings it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use daegi_domain::Topic;
use daegi_kafka::{Consumer, Effect, Halt, Incoming, Missing, Poison, Record, Source, Standing};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::broker::{Broker, SOON};

/// Notes every body; "bad…" is poison, it has room for a number of them only, and "stuck" waits.
#[derive(Debug, Clone)]
pub(crate) struct Notes {
    pub(crate) bodies: Arc<Mutex<Vec<String>>>,
    room: Arc<AtomicUsize>,
    refused: Arc<AtomicBool>,
    /// Whether "stuck" takes effect.
    unstuck: Arc<AtomicBool>,
    /// From when on a replay reads, in unix milliseconds.
    since: Option<u64>,
    /// Partitions that were read from their beginning, and whether to their end.
    complete: Arc<Mutex<BTreeMap<i32, bool>>>,
}

impl Notes {
    /// Somebody who has read nothing yet.
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

    /// The same, and replays begin at this time.
    pub(crate) fn since(since: u64) -> Self {
        Self { since: Some(since), ..Self::new() }
    }

    /// From now on there is room for this many bodies in all.
    pub(crate) fn limit(&self, room: usize) {
        self.refused.store(false, Ordering::SeqCst);
        self.room.store(room, Ordering::SeqCst);
    }

    /// From now on "stuck" takes effect.
    pub(crate) fn unstick(&self) {
        self.unstuck.store(true, Ordering::SeqCst);
    }

    /// Whether a body was noted.
    pub(crate) fn has(&self, body: &str) -> bool {
        self.bodies.lock().unwrap().iter().any(|noted| noted == body)
    }

    /// The bodies with this prefix, in the order in which they were noted.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Vec<String> {
        let bodies = self.bodies.lock().unwrap();
        bodies.iter().filter(|body| body.starts_with(prefix)).cloned().collect()
    }

    /// Whether somebody wanted more room than there is.
    pub(crate) fn is_full(&self) -> bool {
        self.refused.load(Ordering::SeqCst)
    }

    pub(crate) fn count(&self) -> usize {
        self.bodies.lock().unwrap().len()
    }

    /// Somebody who has read everything there was before.
    pub(crate) fn complete() -> Self {
        let complete = (0..16).map(|partition| (partition, true)).collect();
        Self { complete: Arc::new(Mutex::new(complete)), ..Self::new() }
    }

    pub(crate) fn is_complete(&self) -> bool {
        let complete = self.complete.lock().unwrap();
        !complete.is_empty() && complete.values().all(|complete| *complete)
    }

    /// Forgets what it noted, and that it did.
    pub(crate) fn lose_everything(&self) {
        self.bodies.lock().unwrap().clear();
        self.complete.lock().unwrap().clear();
    }
}

impl Effect for Notes {
    const TOPIC: Topic = Topic::ItemChanged;

    type Meaning = String;

    fn read(&self, message: &Incoming<'_>) -> Result<String, Poison> {
        let body = String::from_utf8(message.body.unwrap().to_vec()).unwrap();
        if body.starts_with("bad") {
            let quoted: String = body.chars().take(20).collect();
            return Err(Poison(format!("{quoted} is bad")));
        }
        Ok(body)
    }

    async fn apply(&self, meanings: &[String]) -> Result<(), Halt> {
        for (done, body) in meanings.iter().enumerate() {
            let mut bodies = self.bodies.lock().unwrap();
            if bodies.len() >= self.room.load(Ordering::SeqCst) {
                self.refused.store(true, Ordering::SeqCst);
                return Err(Halt { done, missing: Missing("room".into()) });
            }
            if body == "stuck" && !self.unstuck.load(Ordering::SeqCst) {
                self.refused.store(true, Ordering::SeqCst);
                return Err(Halt { done, missing: Missing("a hand".into()) });
            }
            bodies.push(body.clone());
        }
        Ok(())
    }

    fn replay_from(&self) -> Option<u64> {
        self.since
    }

    async fn standing(&self, partition: i32) -> Result<Standing, Missing> {
        Ok(match self.complete.lock().unwrap().get(&partition) {
            None => Standing::Lost,
            Some(false) => Standing::Partly,
            Some(true) => Standing::Whole,
        })
    }

    async fn begin(&self, partition: i32) -> Result<(), Missing> {
        self.complete.lock().unwrap().insert(partition, false);
        Ok(())
    }

    async fn end(&self, partition: i32) -> Result<(), Missing> {
        // A note that was lost on the way is not made up at the end.
        if let Some(complete) = self.complete.lock().unwrap().get_mut(&partition) {
            *complete = true;
        }
        Ok(())
    }
}

/// A consumer that must be stopped, and then nothing of it may be left.
pub(crate) struct Running {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    pub(crate) fn start(broker: &Broker, notes: &Notes) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let source = Source {
            brokers: broker.at.clone(),
            topics: broker.topics.clone(),
            // Its own, as its topics are.
            group: format!("readers of {}", broker.topics.name(Topic::ItemChanged)),
        };
        let consumer = Consumer::new(source, notes.clone()).unwrap();
        tasks.spawn(consumer.run(stop.clone()));
        tasks.close();
        Self { stop, tasks }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(SOON, self.tasks.wait()).await.unwrap();
    }
}

pub(crate) async fn publish(broker: &Broker, bodies: &[String]) {
    let topic = broker.topics.name(Topic::ItemChanged);
    let record = |body: &String| Record::raw(topic, "concert", Some(body.as_bytes()));
    let records: Vec<_> = bodies.iter().map(record).collect();
    broker.publisher().publish(&records).await.unwrap();
}
