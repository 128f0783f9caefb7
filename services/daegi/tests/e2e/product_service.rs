//! The product service: publishes `item.changed` and waits until the items show it.

use std::collections::BTreeMap;
use std::time::Duration;

use daegi_domain::{ItemChanged, ItemId, ItemName, Topic, Topics};
use daegi_kafka::{Publisher, Record};
use daegi_testkit::eventually;
use reqwest::Method;
use serde_json::Value;

use crate::processes::FleetProcess;

/// Enough markers that their keys reach every partition.
const MARKERS: usize = 32;
const MARKER_PREFIX: &str = "mark-";

/// Publishes `item.changed`.
pub(crate) struct ProductService {
    publisher: Publisher,
    pub(crate) topics: Topics,
    marked: u64,
}

/// An event of an enabled item.
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

/// Returns all items of the admin API by id, without markers.
pub(crate) async fn items(scheduler: &FleetProcess) -> BTreeMap<String, Value> {
    let list = scheduler.admin(Method::GET, "waiting-item", Value::Null).await;
    let all = list["items"].as_array().unwrap_or(&Vec::new()).clone();
    let named = all.into_iter().map(|item| (item["itemId"].as_str().unwrap().to_owned(), item));
    named.filter(|(id, _)| !id.starts_with(MARKER_PREFIX)).collect()
}

impl ProductService {
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

    /// Waits until everything published so far is applied. A marker follows it in every partition, and
    /// partitions are read in order. A batch is applied in any order, so only a second marker, published
    /// after the first is applied, is certainly later.
    pub(crate) async fn settled(&mut self, scheduler: &FleetProcess, deadline: Duration) {
        self.mark(scheduler, deadline).await;
        self.mark(scheduler, deadline).await;
    }

    async fn mark(&mut self, scheduler: &FleetProcess, deadline: Duration) {
        self.marked += 1;
        let marks = (0..MARKERS).map(|n| changed(&format!("{MARKER_PREFIX}{n}"), 1, self.marked));
        let marks: Vec<_> = marks.map(|mark| self.record(&mark)).collect();
        self.publish(&marks).await;
        eventually(deadline, "the markers are applied", async || {
            let list = scheduler.admin(Method::GET, "waiting-item", Value::Null).await;
            let is_current = |item: &&Value| {
                item["itemId"].as_str().is_some_and(|id| id.starts_with(MARKER_PREFIX))
                    && item["version"] == self.marked
            };
            list["items"]
                .as_array()
                .is_some_and(|all| all.iter().filter(is_current).count() == MARKERS)
        })
        .await;
    }
}
