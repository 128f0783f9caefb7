//! Random histories of items: created, changed, removed and created again.

use daegi_domain::{ItemChanged, ItemName};
use daegi_kafka::Record;
use fastrand::Rng;
use rdkafka::message::Header;

use crate::product_service::{ProductService, changed};

/// All events of one item, oldest first.
#[derive(Debug)]
pub(super) struct History {
    pub(super) id: String,
    changes: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Upsert(ItemChanged),
    /// A tombstone with a version header.
    Removed(u64),
}

impl History {
    pub(super) fn random(n: usize, rng: &mut Rng) -> Self {
        let id = format!("item-{n}");
        let mut version = 0;
        let changes = (0..rng.usize(5..20)).map(|_| {
            version += rng.u64(1..4);
            Change::random(&id, version, rng)
        });
        Self { changes: changes.collect(), id }
    }

    /// Returns the final version, or `None` if the item is removed.
    pub(super) fn last(&self) -> Option<u64> {
        match self.changes.last()? {
            Change::Upsert(change) => change.is_waiting_queue_target_item.then_some(change.version),
            Change::Removed(_) => None,
        }
    }

    fn record(&self, index: usize, product_service: &ProductService) -> Record {
        match &self.changes[index] {
            Change::Upsert(change) => product_service.record(change),
            Change::Removed(version) => {
                let mut record = Record::raw(product_service.topic(), &self.id, None);
                let version = Header { key: "version", value: Some(&version.to_string()) };
                record.headers = record.headers.insert(version);
                record
            }
        }
    }
}

impl Change {
    /// One in six changes removes the item: by tombstone, or by `isWaitingQueueTargetItem: false`.
    fn random(id: &str, version: u64, rng: &mut Rng) -> Self {
        let kind = rng.u8(0..12);
        let name = format!("Friday, the {version}.");
        match kind {
            0 => Self::Removed(version),
            _ => Self::Upsert(ItemChanged {
                item_name: ItemName::parse(&name).unwrap(),
                waiting_queue_enabled: rng.bool(),
                is_waiting_queue_target_item: kind != 1,
                ..changed(id, rng.u32(0..1_000), version)
            }),
        }
    }
}

/// All events: items in random order, the events of each item in order.
pub(super) fn interleaved(
    histories: &[History],
    product_service: &ProductService,
    rng: &mut Rng,
) -> Vec<Record> {
    let mut order: Vec<usize> = Vec::new();
    for (n, history) in histories.iter().enumerate() {
        order.extend(std::iter::repeat_n(n, history.changes.len()));
    }
    rng.shuffle(&mut order);
    let mut next = vec![0; histories.len()];
    let record = |n: usize| {
        next[n] += 1;
        histories[n].record(next[n] - 1, product_service)
    };
    order.into_iter().map(record).collect()
}

/// 1,000 random past events in random order.
pub(super) fn past_events(
    histories: &[History],
    product_service: &ProductService,
    rng: &mut Rng,
) -> Vec<Record> {
    let any = |_| {
        let history = rng.choice(histories).unwrap();
        history.record(rng.usize(0..history.changes.len()), product_service)
    };
    (0..1_000).map(any).collect()
}
