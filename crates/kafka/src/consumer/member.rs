//! This process as a member of its group.
//!
//! librdkafka calls back only from within a poll. Every rebalance begins another era; what was read in an
//! earlier era is dropped and read again by the owner of its partition. With `enable.auto.commit`
//! librdkafka commits stored offsets itself before it gives partitions away.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use daegi_domain::Topic;
use metrics::gauge;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::{ClientContext, Statistics};

use crate::client::Quiet;
use crate::meters;

/// What librdkafka calls back.
pub(super) struct Member {
    topic: Topic,
    /// How often partitions have changed hands.
    era: AtomicU64,
    /// How many messages are yet to be read; negative while nobody knows.
    lag: AtomicI64,
}

/// How far a consumer is behind, for whoever wants to watch.
#[derive(Clone)]
pub struct Lag(pub(super) Arc<Member>);

impl Lag {
    /// The topic.
    #[must_use]
    pub fn topic(&self) -> Topic {
        self.0.topic
    }

    /// How many messages of its partitions it has yet to read; none while nobody knows.
    #[must_use]
    pub fn messages(&self) -> Option<u64> {
        self.0.lag.load(Ordering::Relaxed).try_into().ok()
    }
}

impl std::fmt::Debug for Lag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lag").field(&self.topic()).field(&self.messages()).finish()
    }
}

impl Member {
    pub(super) fn new(topic: Topic) -> Self {
        Self { topic, era: AtomicU64::new(0), lag: AtomicI64::new(-1) }
    }

    /// Changes before the first message of a new assignment is seen.
    pub(super) fn era(&self) -> u64 {
        self.era.load(Ordering::SeqCst)
    }
}

impl ConsumerContext for Member {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        self.era.fetch_add(1, Ordering::SeqCst);
        tracing::debug!(topic = %self.topic, change = %summary(rebalance), "partitions change hands");
    }
}

fn summary(rebalance: &Rebalance<'_>) -> String {
    match rebalance {
        Rebalance::Assign(partitions) => format!("{} assigned", partitions.count()),
        Rebalance::Revoke(partitions) => format!("{} revoked", partitions.count()),
        Rebalance::Error(error) => error.to_string(),
    }
}

impl ClientContext for Member {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        Quiet.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        Quiet.error(error, reason);
    }

    /// Partitions of other members have a lag of -1.
    fn stats(&self, statistics: Statistics) {
        let partitions = statistics.topics.values().flat_map(|topic| topic.partitions.values());
        let lag: i64 = partitions.map(|partition| partition.consumer_lag.max(0)).sum();
        self.lag.store(lag, Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "a lag of 2^53 messages is no concern")]
        gauge!(meters::LAG, "topic" => self.topic.event_type()).set(lag as f64);
    }
}
