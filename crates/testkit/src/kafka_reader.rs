//! Somebody else who reads a topic from its beginning.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use rdkafka::consumer::{BaseConsumer, Consumer, StreamConsumer};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::task::spawn_blocking;

/// How long a message that is there may take to arrive.
const SOON: Duration = Duration::from_secs(60);

/// Reads one topic, all partitions, without a group: joining one takes seconds.
pub struct Reader(StreamConsumer);

/// A message as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it was.
    pub partition: i32,
    /// Its place there.
    pub offset: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its body; none is a tombstone.
    pub body: Option<Vec<u8>>,
    /// Its headers, those that are text.
    pub headers: BTreeMap<String, String>,
}

impl Reader {
    /// A reader at the beginning of a topic that is there.
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

    /// The next message, in the order of each partition. A broker that is away is waited for.
    pub async fn next(&self) -> Found {
        loop {
            if let Ok(message) = self.0.recv().await {
                return Found::from(&message);
            }
        }
    }

    /// The next messages, in the order of each partition.
    ///
    /// # Panics
    /// If one of them does not come.
    pub async fn take(&self, count: usize) -> Vec<Found> {
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            let next = tokio::time::timeout(SOON, self.next()).await;
            let next = next.unwrap_or_else(|_| panic!("{} of {count} messages came", all.len()));
            all.push(next);
        }
        all
    }
}

/// How many messages were ever written to a topic. Offsets have gaps only where transactions are
/// used, and daegi uses none.
///
/// # Errors
/// If the broker does not answer.
pub async fn written(brokers: &str, topic: &str) -> anyhow::Result<i64> {
    let (brokers, topic) = (brokers.to_owned(), topic.to_owned());
    let partitions = partitions_of(&brokers, &topic).await?;
    spawn_blocking(move || {
        let consumer: BaseConsumer = config(&brokers).create()?;
        let ends = (0..partitions).map(|partition| {
            let (_, end) = consumer.fetch_watermarks(&topic, partition, SOON)?;
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
        let metadata = consumer.fetch_metadata(Some(&topic), SOON)?;
        let topic = metadata.topics().first().context("no such topic")?;
        Ok(i32::try_from(topic.partitions().len())?)
    })
    .await?
}

fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("group.id", "somebody-else")
        .set("enable.auto.commit", "false")
        .set("reconnect.backoff.max.ms", "500");
    config
}

impl From<&BorrowedMessage<'_>> for Found {
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

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}
