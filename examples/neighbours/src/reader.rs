//! Reading a topic at least once, with plain rdkafka.
//!
//! An offset is stored by [`Reader::done`], so after the effect and never before. Who dies in
//! between reads the event again: an effect must be harmless when it is repeated.

use std::time::Duration;

use daegi_domain::Topic;
use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{Consumer, ConsumerContext, StreamConsumer};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{BorrowedMessage, Message};
use serde::de::DeserializeOwned;

use crate::{Kafka, PAUSE};

/// How long the broker has to hear the last offsets of a service that ends.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Reads the events of one topic.
pub struct Reader {
    topic: String,
    consumer: StreamConsumer<Calm>,
}

/// librdkafka repeats itself every second while a broker is away; whoever reads complains once.
struct Calm;

impl ConsumerContext for Calm {}

impl ClientContext for Calm {
    fn log(&self, _: RDKafkaLogLevel, _: &str, message: &str) {
        tracing::trace!(message, "librdkafka");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::trace!(%error, reason, "librdkafka");
    }
}

/// An event and its place in the topic.
#[derive(Debug)]
pub struct Read<T> {
    /// What was read.
    pub event: T,
    partition: i32,
    offset: i64,
}

impl Reader {
    /// A reader of this topic. Replicas of a service share the work under the name of a group.
    ///
    /// # Errors
    /// If librdkafka refuses the addresses. Brokers that are away are waited for.
    pub fn new(kafka: &Kafka, topic: Topic, group: &str) -> KafkaResult<Self> {
        let consumer: StreamConsumer<Calm> = ClientConfig::new()
            .set("bootstrap.servers", &kafka.brokers)
            .set("client.id", group)
            .set("group.id", group)
            // A new group begins with everything there is, and misses nothing.
            .set("auto.offset.reset", "earliest")
            // librdkafka commits every few seconds and at the end, but only what `done` stored.
            .set("enable.auto.commit", "true")
            .set("enable.auto.offset.store", "false")
            .create_with_context(Calm)?;
        let topic = kafka.topics.name(topic).to_owned();
        consumer.subscribe(&[&topic])?;
        Ok(Self { topic, consumer })
    }

    /// Waits for the next event. May be dropped while it waits: nothing is lost.
    pub async fn next<T: DeserializeOwned>(&self) -> Read<T> {
        let mut complained = false;
        loop {
            match self.consumer.recv().await {
                Ok(message) => match parsed(&message) {
                    Ok(read) => return read,
                    // A real service puts it aside (a dead letter); waiting would not mend it.
                    Err(error) => tracing::warn!(%error, topic = self.topic, "unusable event"),
                },
                Err(error) => {
                    if !std::mem::replace(&mut complained, true) {
                        tracing::warn!(%error, topic = self.topic, "kafka is away, waiting");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// The event has had its effect and need not be read again.
    pub fn done<T>(&self, read: &Read<T>) {
        if let Err(error) = self.consumer.store_offset(&self.topic, read.partition, read.offset) {
            // The partition went to another replica meanwhile, which reads the event again.
            tracing::debug!(%error, topic = self.topic, "the offset was not stored");
        }
    }

    /// Commits what is done and leaves the group, so that others need not wait for it to be missed.
    pub async fn close(self) {
        // Dropping a consumer blocks until the group knows.
        let dropped = tokio::task::spawn_blocking(move || drop(self));
        let _ = tokio::time::timeout(LAST_WORDS, dropped).await;
    }
}

/// A message without a body (a tombstone) is as unusable here as one with a wrong body.
fn parsed<T: DeserializeOwned>(message: &BorrowedMessage<'_>) -> serde_json::Result<Read<T>> {
    Ok(Read {
        event: serde_json::from_slice(message.payload().unwrap_or_default())?,
        partition: message.partition(),
        offset: message.offset(),
    })
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("topic", &self.topic).finish_non_exhaustive()
    }
}
