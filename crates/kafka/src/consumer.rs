//! The loop that applies the messages of a topic to the store.
//!
//! | what happens | what becomes of the message |
//! |---|---|
//! | the handler applied it | its offset is stored, the next one of its partition follows |
//! | it cannot be decoded | it is written to the dead-letter topic with the reason, then as above |
//! | the handler cannot apply it yet, or the dead letter cannot be written | retried with backoff; its partition is held, others continue |
//! | the process ends or dies | the next owner of the partition reads it again |
//! | the store lost the effects of earlier messages | the partition is replayed |
//!
//! So applying a message twice must be harmless. A partition keeps its order and waits for no other one:
//! `dispatch` polls the topic into one queue per partition (`queues`), and `processor` is the worker that
//! applies the records of one queue.

mod dead_letter;
mod dispatch;
mod fetched;
mod group_consumer;
mod group_context;
mod message;
mod processor;
mod queues;
mod replay;

use std::future::Future;
use std::sync::Arc;

use daegi_domain::{Topic, Topics};
use rdkafka::consumer::{Consumer as _, StreamConsumer};
use tokio_util::sync::CancellationToken;

use crate::{Brokers, Publisher, Result};
use dispatch::Dispatcher;
use group_consumer::GroupConsumer;
use group_context::GroupContext;
pub use group_context::LagHandle;
pub use message::InboundMessage;
use processor::Processor;

/// What a consumer reads.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// The brokers, which need not be reachable yet.
    pub brokers: Brokers,
    /// The names of the topics.
    pub topics: Topics,
    /// The consumer group; replicas of one group share the partitions of each topic.
    pub group: String,
}

/// A batch failed part-way: the first `applied` messages took effect, the next one must be retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialFailure {
    /// How many leading messages took effect. Later ones may have, too; they are applied again.
    pub applied: usize,
    /// Why the next one must be retried.
    pub cause: RetryLater,
}

/// Applies the messages of one topic.
pub trait MessageHandler: Send + Sync + 'static {
    /// The topic.
    const TOPIC: Topic;

    /// A decoded message.
    type Command: Send + Sync;

    /// Decodes a message. An error is final: the message goes to the dead-letter topic.
    fn decode(&self, message: &InboundMessage<'_>) -> std::result::Result<Self::Command, Poison>;

    /// Applies these commands of one partition in order, as far as possible. Must be idempotent.
    fn apply(
        &self,
        commands: &[Self::Command],
    ) -> impl Future<Output = std::result::Result<(), PartialFailure>> + Send;

    /// Returns the time from which a replay reads, in unix milliseconds; `None` reads from the
    /// start. A group without an offset reads from the start in either case.
    fn replay_from(&self) -> Option<u64> {
        None
    }

    /// Returns how far the replay of a partition got.
    fn replay_progress(
        &self,
        partition: i32,
    ) -> impl Future<Output = std::result::Result<ReplayProgress, RetryLater>> + Send;

    /// Records that the replay of a partition has started.
    fn begin_replay(
        &self,
        partition: i32,
    ) -> impl Future<Output = std::result::Result<(), RetryLater>> + Send;

    /// Records that a partition was replayed to its end, unless the record of its start was lost
    /// meanwhile.
    fn complete_replay(
        &self,
        partition: i32,
    ) -> impl Future<Output = std::result::Result<(), RetryLater>> + Send;
}

/// Why a message can never be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poison(pub String);

/// Why a message cannot be applied yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryLater(pub String);

/// How far the replay of a partition got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayProgress {
    /// Not recorded, because the store is new or lost data: the partition must be replayed from
    /// [`MessageHandler::replay_from`].
    NotStarted,
    /// Applied up to the group's offset.
    InProgress,
    /// Applied to the end of the partition.
    Complete,
}

/// Consumes the topic of its handler.
pub struct Consumer<E> {
    consumer: Arc<GroupConsumer>,
    processor: Arc<Processor<E>>,
}

impl<E: MessageHandler> Consumer<E> {
    /// Creates a consumer and subscribes it.
    ///
    /// # Errors
    /// If librdkafka refuses the addresses, or the properties cannot be used.
    pub fn new(config: ConsumerConfig, handler: E) -> Result<Self> {
        let ConsumerConfig { brokers, topics, group } = config;
        let defaults = [
            // A dead replica is replaced after 10 s. One that cannot reach its store is replaced
            // after `max.poll.interval.ms` (5 minutes), in case another one can.
            ("session.timeout.ms", "10000"),
            ("topic.metadata.refresh.interval.ms", "10000"),
            // librdkafka prefetches and then pauses for 1 s by default, which is longer than the
            // workers need to apply what it prefetched.
            ("fetch.queue.backoff.ms", "10"),
        ];
        let consumer: StreamConsumer<GroupContext> = brokers
            .client_config(&defaults)?
            // One group per topic, so that a rebalance of one topic does not stop the others.
            .set("group.id", format!("{group}.{}", E::TOPIC))
            // A new group starts with the oldest record: the compacted topic holds all items.
            .set("auto.offset.reset", "earliest")
            // librdkafka commits every few seconds and when partitions are revoked, but only
            // offsets passed to `store_offset`: after the effect, never before.
            .set("enable.auto.commit", "true")
            .set("enable.auto.offset.store", "false")
            // Reports the end of a partition.
            .set("enable.partition.eof", "true")
            .set("statistics.interval.ms", "5000")
            .create_with_context(GroupContext::new(E::TOPIC))?;
        consumer.subscribe(&[topics.name(E::TOPIC)])?;
        let processor = Arc::new(Processor::new(handler, Publisher::new(&brokers)?, topics));
        Ok(Self { consumer: Arc::new(GroupConsumer::new(consumer)), processor })
    }

    /// Returns a handle that reads how far the consumer is behind.
    #[must_use]
    pub fn lag(&self) -> LagHandle {
        LagHandle(Arc::clone(self.consumer.context()))
    }

    /// Runs until `stop` is cancelled, then finishes attempts in progress and commits stored
    /// offsets.
    pub async fn run(self, stop: CancellationToken) {
        Dispatcher::new(self.consumer, self.processor, stop).run().await;
    }
}

impl<E> std::fmt::Debug for Consumer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}
