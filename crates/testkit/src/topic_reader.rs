//! Reads a topic from its start, independently of daegi.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use rdkafka::consumer::{BaseConsumer, Consumer, StreamConsumer};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::task::spawn_blocking;

/// How long an existing message may take to arrive.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads all partitions of one topic without a consumer group, because joining one takes seconds.
pub struct TopicReader(StreamConsumer);

/// A message of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRecord {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The key.
    pub key: Option<Vec<u8>>,
    /// The body; `None` is a tombstone.
    pub body: Option<Vec<u8>>,
    /// The headers that are text.
    pub headers: BTreeMap<String, String>,
}

impl TopicReader {
    /// Opens a reader at the start of an existing topic.
    ///
    /// # Errors
    /// If the broker does not know the topic.
    pub async fn open(brokers: &str, topic: &str) -> anyhow::Result<Self> {
        let mut partitions = TopicPartitionList::new();
        for partition in 0..partitions_of(brokers, topic).await? {
            partitions.add_partition_offset(topic, partition, Offset::Beginning)?;
        }
        let consumer: StreamConsumer = config(brokers).create()?;
        consumer.assign(&partitions)?;
        Ok(Self(consumer))
    }

    /// Returns the next message, in the order of each partition. Waits for an unavailable broker.
    pub async fn next(&self) -> TopicRecord {
        loop {
            if let Ok(message) = self.0.recv().await {
                return TopicRecord::from(&message);
            }
        }
    }

    /// Returns the next messages, in the order of each partition.
    ///
    /// # Panics
    /// If one of them does not arrive within 60 s.
    pub async fn take(&self, count: usize) -> Vec<TopicRecord> {
        let mut records = Vec::with_capacity(count);
        while records.len() < count {
            let next = tokio::time::timeout(RECEIVE_TIMEOUT, self.next()).await;
            let next =
                next.unwrap_or_else(|_| panic!("{} of {count} messages arrived", records.len()));
            records.push(next);
        }
        records
    }
}

/// Returns how many messages were ever written to a topic. Offsets have gaps only with
/// transactions, which daegi does not use.
///
/// # Errors
/// If the broker does not respond.
pub async fn message_count(brokers: &str, topic: &str) -> anyhow::Result<i64> {
    let (brokers, topic) = (brokers.to_owned(), topic.to_owned());
    let partitions = partitions_of(&brokers, &topic).await?;
    spawn_blocking(move || {
        let consumer: BaseConsumer = config(&brokers).create()?;
        let ends = (0..partitions).map(|partition| {
            let (_, end) = consumer.fetch_watermarks(&topic, partition, RECEIVE_TIMEOUT)?;
            Ok(end)
        });
        ends.sum()
    })
    .await?
}

async fn partitions_of(brokers: &str, topic: &str) -> anyhow::Result<i32> {
    let (config, topic) = (config(brokers), topic.to_owned());
    spawn_blocking(move || {
        let consumer: BaseConsumer = config.create()?;
        let metadata = consumer.fetch_metadata(Some(&topic), RECEIVE_TIMEOUT)?;
        let topic = metadata.topics().first().context("no such topic")?;
        Ok(i32::try_from(topic.partitions().len())?)
    })
    .await?
}

fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("group.id", "topic-reader")
        .set("enable.auto.commit", "false")
        .set("reconnect.backoff.max.ms", "500");
    config
}

impl From<&BorrowedMessage<'_>> for TopicRecord {
    fn from(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().into_iter().flat_map(Headers::iter);
        let text = |bytes: Option<&[u8]>| String::from_utf8(bytes?.into()).ok();
        Self {
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(Into::into),
            body: message.payload().map(Into::into),
            headers: headers
                .filter_map(|header| Some((header.key.to_owned(), text(header.value)?)))
                .collect(),
        }
    }
}

impl std::fmt::Debug for TopicReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TopicReader").finish_non_exhaustive()
    }
}
