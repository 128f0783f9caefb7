//! Messages as they lie in a topic.

use std::time::Duration;

use anyhow::Context;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::message::{Header, Headers, Message as _, OwnedHeaders};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::duel::Load;
use crate::stage::TOPIC_PARTITIONS;

/// How long a message that must be there may take to come.
const SOON: Duration = Duration::from_secs(60);

/// One message, byte for byte.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) partition: i32,
    pub(crate) key: Vec<u8>,
    pub(crate) body: Vec<u8>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
}

impl Message {
    /// The headers as librdkafka takes them over.
    pub(crate) fn owned_headers(&self) -> OwnedHeaders {
        let empty = OwnedHeaders::new_with_capacity(self.headers.len());
        self.headers
            .iter()
            .fold(empty, |all, (key, value)| all.insert(Header { key, value: Some(value) }))
    }

    fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(key, value)| key.len() + value.len());
        self.key.len() + self.body.len() + headers.sum::<usize>()
    }
}

/// How much that is.
pub(crate) fn load(messages: &[Message]) -> Load {
    Load { messages: messages.len(), bytes: messages.iter().map(Message::bytes).sum() }
}

/// Reads so many messages of a topic, each partition in its order.
pub(crate) async fn read(brokers: &str, topic: &str, count: usize) -> anyhow::Result<Vec<Message>> {
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "bench-reader")
        .set("enable.auto.commit", "false")
        .create()?;
    let mut partitions = TopicPartitionList::new();
    for partition in 0..TOPIC_PARTITIONS {
        partitions.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&partitions)?;
    let mut messages = Vec::with_capacity(count);
    while messages.len() < count {
        let next = tokio::time::timeout(SOON, consumer.recv()).await;
        let found = next.with_context(|| format!("{} of {count} messages", messages.len()))??;
        messages.push(Message {
            partition: found.partition(),
            key: found.key().unwrap_or_default().into(),
            body: found.payload().unwrap_or_default().into(),
            headers: found.headers().map(headers).unwrap_or_default(),
        });
    }
    Ok(messages)
}

fn headers(headers: &impl Headers) -> Vec<(String, Vec<u8>)> {
    let pairs = headers.iter();
    pairs.map(|pair| (pair.key.into(), pair.value.unwrap_or_default().into())).collect()
}
