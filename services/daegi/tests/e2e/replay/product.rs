//! Items that come, change, go and come back.

use daegi_domain::{ItemChanged, ItemName};
use daegi_kafka::Record;
use fastrand::Rng;
use rdkafka::message::Header;

use crate::catalogue::{Catalogue, changed};

/// Everything that was ever said about an item, oldest first.
#[derive(Debug)]
pub(super) struct History {
    pub(super) id: String,
    changes: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    To(ItemChanged),
    /// A tombstone that says its version.
    Gone(u64),
}

impl History {
    pub(super) fn random(n: usize, chance: &mut Rng) -> Self {
        let id = format!("item-{n}");
        let mut version = 0;
        let changes = (0..chance.usize(5..20)).map(|_| {
            version += chance.u64(1..4);
            Change::random(&id, version, chance)
        });
        Self { changes: changes.collect(), id }
    }

    /// The version that counts; none if the item is out.
    pub(super) fn last(&self) -> Option<u64> {
        match self.changes.last()? {
            Change::To(change) => change.is_waiting_queue_target_item.then_some(change.version),
            Change::Gone(_) => None,
        }
    }

    fn record(&self, place: usize, catalogue: &Catalogue) -> Record {
        match &self.changes[place] {
            Change::To(change) => catalogue.record(change),
            Change::Gone(version) => {
                let mut record = Record::raw(catalogue.topic(), &self.id, None);
                let version = Header { key: "version", value: Some(&version.to_string()) };
                record.headers = record.headers.insert(version);
                record
            }
        }
    }
}

impl Change {
    /// One in six takes the item out, by either way.
    fn random(id: &str, version: u64, chance: &mut Rng) -> Self {
        let kind = chance.u8(0..12);
        let name = format!("Friday, the {version}.");
        match kind {
            0 => Self::Gone(version),
            _ => Self::To(ItemChanged {
                item_name: ItemName::parse(&name).unwrap(),
                waiting_queue_enabled: chance.bool(),
                is_waiting_queue_target_item: kind != 1,
                ..changed(id, chance.u32(0..1_000), version)
            }),
        }
    }
}

/// Everything, items in random order, each in its own.
pub(super) fn interleaved(
    histories: &[History],
    catalogue: &Catalogue,
    chance: &mut Rng,
) -> Vec<Record> {
    let mut order: Vec<usize> = Vec::new();
    for (n, history) in histories.iter().enumerate() {
        order.extend(std::iter::repeat_n(n, history.changes.len()));
    }
    chance.shuffle(&mut order);
    let mut places = vec![0; histories.len()];
    let record = |n: usize| {
        places[n] += 1;
        histories[n].record(places[n] - 1, catalogue)
    };
    order.into_iter().map(record).collect()
}

/// A thousand changes from anywhere in the past, in no order at all.
pub(super) fn old_ones(
    histories: &[History],
    catalogue: &Catalogue,
    chance: &mut Rng,
) -> Vec<Record> {
    let any = |_| {
        let history = chance.choice(histories).unwrap();
        history.record(chance.usize(0..history.changes.len()), catalogue)
    };
    (0..1_000).map(any).collect()
}
