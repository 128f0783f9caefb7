//! The order service: hears who was let in, and is hard to please.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use daegi_domain::TokenActivated;
use daegi_testkit::{TopicReader, eventually};
use tokio::task::JoinSet;

/// The numbers of each item's people.
pub(super) type Numbers = BTreeMap<String, BTreeSet<u64>>;

/// Listens until it is dropped.
pub(super) struct OrderService {
    told: Arc<Mutex<Told>>,
    _listening: JoinSet<()>,
}

/// What it has heard.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// Who was let in.
    pub(super) numbers: Numbers,
    /// What should not have been.
    pub(super) wrong: Vec<String>,
    /// How often it was told what it knew.
    pub(super) repeats: usize,
    bodies: HashMap<(String, u64), Vec<u8>>,
}

impl OrderService {
    pub(super) async fn listen(brokers: &str) -> Self {
        let reader = TopicReader::open(brokers, "token.activated").await.unwrap();
        let told = Arc::<Mutex<Told>>::default();
        let mut listening = JoinSet::new();
        let ear = Arc::clone(&told);
        listening.spawn(async move {
            loop {
                let body = reader.next().await.body.unwrap();
                ear.lock().unwrap().hear(body);
            }
        });
        Self { told, _listening: listening }
    }

    pub(super) fn told(&self) -> Told {
        self.told.lock().unwrap().clone()
    }

    /// How many people it has heard of.
    pub(super) fn count(&self) -> usize {
        self.told.lock().unwrap().bodies.len()
    }

    pub(super) async fn until(&self, count: usize) {
        let what = format!("{count} people are told of");
        eventually(Duration::from_secs(120), &what, async || self.count() >= count).await;
    }
}

impl Told {
    /// All events of an item are in one partition, so they are heard in the order of the log.
    fn hear(&mut self, body: Vec<u8>) {
        let event: TokenActivated = serde_json::from_slice(&body).unwrap();
        let (item, number) = (event.item_id.to_string(), event.number.0);
        if let Some(first) = self.bodies.get(&(item.clone(), number)) {
            self.repeats += 1;
            if *first != body {
                self.wrong.push(format!("{item} {number}: a repeat is not the same"));
            }
            return;
        }
        let numbers = self.numbers.entry(item.clone()).or_default();
        if numbers.last().is_some_and(|last| *last > number) {
            self.wrong.push(format!("{item} {number} came after {:?}", numbers.last()));
        }
        numbers.insert(number);
        self.bodies.insert((item, number), body);
    }
}
