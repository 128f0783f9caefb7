//! The order service: reads `token.activated` and records violations of order and identity.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use daegi_domain::TokenActivated;
use daegi_testkit::{TopicReader, eventually};
use tokio::task::JoinSet;

/// The ticket numbers of each item.
pub(super) type Numbers = BTreeMap<String, BTreeSet<u64>>;

/// Reads the topic until it is dropped.
pub(super) struct OrderService {
    received: Arc<Mutex<ReceivedEvents>>,
    _reading: JoinSet<()>,
}

/// What it has read.
#[derive(Debug, Clone, Default)]
pub(super) struct ReceivedEvents {
    /// The admitted numbers.
    pub(super) numbers: Numbers,
    /// Events out of order, and repeats that differ.
    pub(super) violations: Vec<String>,
    /// Events received more than once.
    pub(super) repeats: usize,
    bodies: HashMap<(String, u64), Vec<u8>>,
}

impl OrderService {
    pub(super) async fn start(brokers: &str) -> Self {
        let reader = TopicReader::open(brokers, "token.activated").await.unwrap();
        let received = Arc::<Mutex<ReceivedEvents>>::default();
        let mut reading = JoinSet::new();
        let events = Arc::clone(&received);
        reading.spawn(async move {
            loop {
                let body = reader.next().await.body.unwrap();
                events.lock().unwrap().record(body);
            }
        });
        Self { received, _reading: reading }
    }

    pub(super) fn received(&self) -> ReceivedEvents {
        self.received.lock().unwrap().clone()
    }

    /// Number of distinct events.
    pub(super) fn count(&self) -> usize {
        self.received.lock().unwrap().bodies.len()
    }

    pub(super) async fn until(&self, count: usize) {
        let what = format!("{count} events are received");
        eventually(Duration::from_secs(120), &what, async || self.count() >= count).await;
    }
}

impl ReceivedEvents {
    /// Checks one event. The events of an item share a partition, so they arrive in order.
    fn record(&mut self, body: Vec<u8>) {
        let event: TokenActivated = serde_json::from_slice(&body).unwrap();
        let (item, number) = (event.item_id.to_string(), event.number.0);
        if let Some(first) = self.bodies.get(&(item.clone(), number)) {
            self.repeats += 1;
            if *first != body {
                self.violations.push(format!("{item} {number}: a repeat differs"));
            }
            return;
        }
        let numbers = self.numbers.entry(item.clone()).or_default();
        if numbers.last().is_some_and(|last| *last > number) {
            self.violations.push(format!("{item} {number} came after {:?}", numbers.last()));
        }
        numbers.insert(number);
        self.bodies.insert((item, number), body);
    }
}
