//! 10,000 item changes and 1,000 invalid messages in random order.

use std::collections::BTreeMap;

use daegi_kafka::Record;
use fastrand::Rng;
use rdkafka::message::{Header, OwnedHeaders};
use serde_json::{Value, json};

use crate::product_service::{ProductService, changed};

const ITEMS: u32 = 200;
const VERSIONS: u64 = 50;
const POISON: usize = 1_000;

/// The header that identifies a message of this test.
pub(super) const NUMBER: &str = "test-number";

pub(super) struct Messages {
    pub(super) records: Vec<Record>,
    /// The kind of each invalid message, by its number.
    pub(super) poison: BTreeMap<String, &'static str>,
    /// Latest version and stock of each item.
    pub(super) last: BTreeMap<String, (u64, u64)>,
}

impl Messages {
    pub(super) fn random(product_service: &ProductService, rng: &mut Rng) -> Self {
        let mut last: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let (mut records, mut poison) = (Vec::new(), BTreeMap::new());
        for (index, item) in random_order(rng).into_iter().enumerate() {
            let mut record = match item {
                Some(id) => {
                    let version = last.get(&id).map_or(1, |(version, _)| version + 1);
                    let stock = rng.u32(..);
                    last.insert(id.clone(), (version, stock.into()));
                    product_service.record(&changed(&id, stock, version))
                }
                None => {
                    let (kind, record) = poisonous(product_service.topic(), rng);
                    poison.insert(index.to_string(), kind);
                    record
                }
            };
            let header = Header { key: NUMBER, value: Some(&index.to_string()) };
            record.headers = record.headers.insert(header);
            records.push(record);
        }
        Self { records, poison, last }
    }
}

/// Each item once per version; `None` stands for an invalid message.
fn random_order(rng: &mut Rng) -> Vec<Option<String>> {
    let items = (0..ITEMS).flat_map(|n| (0..VERSIONS).map(move |_| Some(format!("item-{n}"))));
    let mut order: Vec<_> = items.chain((0..POISON).map(|_| None)).collect();
    rng.shuffle(&mut order);
    order
}

/// Builds an invalid message about an existing item, so that applying it would be visible.
fn poisonous(topic: &str, rng: &mut Rng) -> (&'static str, Record) {
    let id = format!("item-{}", rng.u32(0..ITEMS));
    let good = json!({
        "itemId": id, "itemName": "Friday 8 pm", "remainCount": 1, "version": 1_000_000,
        "waitingQueueEnabled": true, "isWaitingQueueTargetItem": true,
        "occurredAt": "2026-01-01T00:00:00Z"
    });
    let (kind, body) = rng.choice(bodies(&good)).unwrap();
    let mut record = Record::raw(topic, &id, body.as_deref());
    if body.is_none() {
        let version = Header { key: "version", value: Some("the last one") };
        record.headers = OwnedHeaders::new().insert(version);
    }
    (kind, record)
}

fn bodies(good: &Value) -> Vec<(&'static str, Option<Vec<u8>>)> {
    let text = good.to_string();
    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        Some(body.to_string().into_bytes())
    };
    let mut without = good.clone();
    without.as_object_mut().unwrap().remove("version");
    let mut no_utf8 = text.clone().into_bytes();
    no_utf8[text.find("Friday").unwrap()] = 0xff;
    vec![
        ("cut off", Some(text.as_bytes()[..text.len() - 1].into())),
        ("two of them", Some(text.repeat(2).into_bytes())),
        ("no JSON", Some(b"item changed".into())),
        ("empty", Some(Vec::new())),
        ("null", Some(b"null".into())),
        ("not UTF-8", Some(no_utf8)),
        ("a field is missing", Some(without.to_string().into_bytes())),
        ("a bad id", with("itemId", json!("a b"))),
        ("a reserved id", with("itemId", json!("~daegi.x"))),
        ("an id of another type", with("itemId", json!([1]))),
        ("a bad name", with("itemName", json!(""))),
        ("negative stock", with("remainCount", json!(-1))),
        ("too much stock", with("remainCount", json!(1_u64 << 32))),
        ("a version of another type", with("version", json!("2"))),
        ("a flag of another type", with("waitingQueueEnabled", json!(1))),
        ("a tombstone with a bad version", None),
    ]
}
