//! The product service: what it publishes, and what operators see of it.

use std::collections::BTreeMap;
use std::time::Duration;

use daegi_domain::{ItemChanged, ItemId, ItemName, Topic, Topics};
use daegi_kafka::{Publisher, Record};
use daegi_testkit::eventually;
use reqwest::Method;
use serde_json::Value;

use crate::member::FleetProcess;

/// Marks are spread by their keys, and so many of them are in every partition.
const MARKS: usize = 32;
const MARK: &str = "mark-";

/// Whoever publishes `item.changed`.
pub(crate) struct Catalogue {
    publisher: Publisher,
    pub(crate) topics: Topics,
    marked: u64,
}

/// An item that people wait for.
pub(crate) fn changed(id: &str, stock: u32, version: u64) -> ItemChanged {
    ItemChanged {
        item_id: ItemId::parse(id).unwrap(),
        item_name: ItemName::parse("Friday 8 pm").unwrap(),
        remain_count: stock,
        waiting_queue_enabled: true,
        is_waiting_queue_target_item: true,
        version,
        occurred_at: "2026-01-01T00:00:00Z".into(),
    }
}

/// All items as operators see them, by id.
pub(crate) async fn items(scheduler: &FleetProcess) -> BTreeMap<String, Value> {
    let list = scheduler.admin(Method::GET, "waiting-item", Value::Null).await;
    let all = list["items"].as_array().unwrap_or(&Vec::new()).clone();
    let named = all.into_iter().map(|item| (item["itemId"].as_str().unwrap().to_owned(), item));
    named.filter(|(id, _)| !id.starts_with(MARK)).collect()
}

impl Catalogue {
    pub(crate) fn new(brokers: &str, topics: &Topics) -> Self {
        let publisher =
            Publisher::new(brokers).unwrap().with_delivery_timeout(Duration::from_secs(60));
        Self { publisher, topics: topics.clone(), marked: 0 }
    }

    pub(crate) fn record(&self, event: &ItemChanged) -> Record {
        Record::from_event(event, &self.topics).unwrap()
    }

    pub(crate) fn topic(&self) -> &str {
        self.topics.name(Topic::ItemChanged)
    }

    pub(crate) async fn publish(&self, records: &[Record]) {
        self.publisher.publish(records).await.unwrap();
    }

    /// Waits until everything published so far has had its effect: a mark goes behind it in every
    /// partition, and partitions are read in order. What is read in one go takes effect in any
    /// order, so only a second mark, written when the first is there, is surely behind it.
    pub(crate) async fn settled(&mut self, scheduler: &FleetProcess, deadline: Duration) {
        self.mark(scheduler, deadline).await;
        self.mark(scheduler, deadline).await;
    }

    async fn mark(&mut self, scheduler: &FleetProcess, deadline: Duration) {
        self.marked += 1;
        let marks = (0..MARKS).map(|n| changed(&format!("{MARK}{n}"), 1, self.marked));
        let marks: Vec<_> = marks.map(|mark| self.record(&mark)).collect();
        self.publish(&marks).await;
        eventually(deadline, "the marks are there", async || {
            let list = scheduler.admin(Method::GET, "waiting-item", Value::Null).await;
            let of_now = |item: &&Value| {
                item["itemId"].as_str().is_some_and(|id| id.starts_with(MARK))
                    && item["version"] == self.marked
            };
            list["items"].as_array().is_some_and(|all| all.iter().filter(of_now).count() == MARKS)
        })
        .await;
    }
}
