//! Somebody else who reads a topic from its beginning.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::message::{Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A message as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) key: String,
    pub(crate) body: Vec<u8>,
    pub(crate) headers: BTreeMap<String, String>,
}

/// Reads this many messages, in the order of each partition.
pub(crate) async fn read(brokers: &str, topic: &str, count: usize) -> Vec<Found> {
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", format!("reader-{}", uuid::Uuid::new_v4()))
        .create()
        .unwrap();
    // Assigned by hand: joining a group takes seconds.
    let mut partitions = TopicPartitionList::new();
    for partition in 0..3 {
        partitions.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&partitions).unwrap();
    let mut all = Vec::new();
    while all.len() < count {
        let message = tokio::time::timeout(SOON, consumer.recv()).await.unwrap().unwrap();
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or(b"")).into();
        let headers = message.headers().into_iter().flat_map(Headers::iter);
        all.push(Found {
            key: text(message.key()),
            body: message.payload().unwrap_or(b"").into(),
            headers: headers.map(|header| (header.key.into(), text(header.value))).collect(),
        });
    }
    all
}
