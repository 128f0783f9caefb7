//! At-least-once reading of a topic with plain rdkafka.
//!
//! [`TopicReader::ack`] stores the offset after the effect. A process that stops in between reads the event again, so
//! effects must be idempotent.

use std::time::Duration;

use daegi_domain::Topic;
use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{Consumer, ConsumerContext, StreamConsumer};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::message::{BorrowedMessage, Message};
use serde::de::DeserializeOwned;

use crate::{Kafka, RETRY_INTERVAL};

/// Limit for the last offset commit at shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// PreferredLanguage the events of one topic.
pub struct TopicReader {
    topic: String,
    consumer: StreamConsumer<QuietContext>,
}

/// Logs librdkafka messages at trace level, because librdkafka repeats them every second while a broker is
/// unavailable; `next` logs the outage once.
struct QuietContext;

impl ConsumerContext for QuietContext {}

impl ClientContext for QuietContext {
    fn log(&self, _: RDKafkaLogLevel, _: &str, message: &str) {
        tracing::trace!(message, "librdkafka");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::trace!(%error, reason, "librdkafka");
    }
}

/// An event with its partition and offset.
#[derive(Debug)]
pub struct ReadEvent<T> {
    /// The event.
    pub event: T,
    partition: i32,
    offset: i64,
}

impl TopicReader {
    /// Subscribes to the topic. Replicas of a service share its partitions as one consumer group.
    ///
    /// # Errors
    /// If librdkafka rejects the brokers. Unreachable brokers are retried.
    pub fn new(kafka: &Kafka, topic: Topic, group: &str) -> KafkaResult<Self> {
        let consumer: StreamConsumer<QuietContext> = ClientConfig::new()
            .set("bootstrap.servers", &kafka.brokers)
            .set("client.id", group)
            .set("group.id", group)
            // A new group begins with the oldest event.
            .set("auto.offset.reset", "earliest")
            // librdkafka commits every few seconds and at the end, but only offsets that `ack` stored.
            .set("enable.auto.commit", "true")
            .set("enable.auto.offset.store", "false")
            .create_with_context(QuietContext)?;
        let topic = kafka.topics.name(topic).to_owned();
        consumer.subscribe(&[&topic])?;
        Ok(Self { topic, consumer })
    }

    /// Waits for the next event. Cancel safe.
    pub async fn next<T: DeserializeOwned>(&self) -> ReadEvent<T> {
        let mut logged = false;
        loop {
            match self.consumer.recv().await {
                Ok(message) => match parsed(&message) {
                    Ok(read) => return read,
                    // A real service moves it to a dead letter topic; a retry would fail again.
                    Err(error) => {
                        tracing::warn!(%error, topic = self.topic, "invalid event skipped")
                    }
                },
                Err(error) => {
                    if !std::mem::replace(&mut logged, true) {
                        tracing::warn!(%error, topic = self.topic, "kafka unavailable, retrying");
                    }
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    /// Stores the offset after the effect of the event.
    pub fn ack<T>(&self, read: &ReadEvent<T>) {
        if let Err(error) = self.consumer.store_offset(&self.topic, read.partition, read.offset) {
            // The partition was reassigned; the other replica reads the event again.
            tracing::debug!(%error, topic = self.topic, "offset not stored");
        }
    }

    /// Commits and leaves the group, so that the other replicas take over before the session timeout.
    pub async fn close(self) {
        // Dropping a consumer blocks until the broker confirms.
        let dropped = tokio::task::spawn_blocking(move || drop(self));
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, dropped).await;
    }
}

/// A message without a body (a tombstone) is an error, like an invalid body.
fn parsed<T: DeserializeOwned>(message: &BorrowedMessage<'_>) -> serde_json::Result<ReadEvent<T>> {
    Ok(ReadEvent {
        event: serde_json::from_slice(message.payload().unwrap_or_default())?,
        partition: message.partition(),
        offset: message.offset(),
    })
}

impl std::fmt::Debug for TopicReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TopicReader").field("topic", &self.topic).finish_non_exhaustive()
    }
}
