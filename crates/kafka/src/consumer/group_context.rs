//! The consumer group as librdkafka reports it.
//!
//! librdkafka runs its callbacks only during a poll. Every rebalance starts another generation;
//! records read in an earlier one are dropped and read again by the owner of their partition. With
//! `enable.auto.commit` librdkafka commits stored offsets before it revokes partitions.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use ::metrics::gauge;
use daegi_domain::Topic;
use rdkafka::client::OAuthToken;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::{ClientContext, Statistics};

use crate::client::{self, QuietContext};
use crate::metrics;

/// The callbacks of one consumer.
pub(super) struct GroupContext {
    topic: Topic,
    /// Incremented by every rebalance.
    generation: AtomicU64,
    /// Messages of the assigned partitions that were not read yet; -1 until the first statistics.
    lag: AtomicI64,
}

/// Reads how far a consumer is behind.
#[derive(Clone)]
pub struct LagHandle(pub(super) Arc<GroupContext>);

impl LagHandle {
    /// The topic.
    #[must_use]
    pub fn topic(&self) -> Topic {
        self.0.topic
    }

    /// Returns how many messages of its partitions the consumer has not read yet; `None` until
    /// librdkafka has reported its first statistics.
    #[must_use]
    pub fn messages(&self) -> Option<u64> {
        self.0.lag.load(Ordering::Relaxed).try_into().ok()
    }
}

impl std::fmt::Debug for LagHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LagHandle").field(&self.topic()).field(&self.messages()).finish()
    }
}

impl GroupContext {
    pub(super) fn new(topic: Topic) -> Self {
        Self { topic, generation: AtomicU64::new(0), lag: AtomicI64::new(-1) }
    }

    /// Returns the current generation. It changes before the first message of a new assignment is
    /// delivered.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }
}

impl ConsumerContext for GroupContext {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        tracing::debug!(topic = %self.topic, change = %summary(rebalance), "partitions reassigned");
    }
}

fn summary(rebalance: &Rebalance<'_>) -> String {
    match rebalance {
        Rebalance::Assign(partitions) => format!("{} assigned", partitions.count()),
        Rebalance::Revoke(partitions) => format!("{} revoked", partitions.count()),
        Rebalance::Error(error) => error.to_string(),
    }
}

impl ClientContext for GroupContext {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        QuietContext.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        QuietContext.error(error, reason);
    }

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        client::oauth_token(config)
    }

    /// Records the lag of the assigned partitions. librdkafka reports -1 for those of other members.
    fn stats(&self, statistics: Statistics) {
        let partitions = statistics.topics.values().flat_map(|topic| topic.partitions.values());
        let lag: i64 = partitions.map(|partition| partition.consumer_lag.max(0)).sum();
        self.lag.store(lag, Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "a lag of 2^53 messages is no concern")]
        gauge!(metrics::LAG, "topic" => self.topic.event_type()).set(lag as f64);
    }
}
