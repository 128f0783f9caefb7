//! The loop that turns messages into effects.
//!
//! | what happens | what becomes of the message |
//! |---|---|
//! | the effect is there | its offset is stored, the next one of its partition follows |
//! | the message is poison | it goes to the dead letters with its reason, then as above |
//! | the effect must wait | tried again with growing pauses; nothing of its partition passes it |
//! | the process ends or dies | read again by whoever has the partition next |
//!
//! So every effect must be harmless when repeated. Partitions go side by side, each in order.

mod dead_letter;
mod incoming;
mod partition;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{Topic, Topics};
use futures_util::StreamExt;
use futures_util::future::join_all;
use rdkafka::consumer::{CommitMode, Consumer as _, ConsumerContext, StreamConsumer};
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use tokio_util::sync::CancellationToken;

use crate::client::{self, Quiet};
use crate::{Publisher, Result};
pub use incoming::Incoming;
use partition::Work;

/// How many messages are under way at most: what bounds memory while the store is slow.
const CHUNK: usize = 500;

/// The pause after librdkafka reported trouble instead of a message.
const PAUSE: Duration = Duration::from_millis(250);

/// How long the broker has to hear the last offsets of a process that ends.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Where messages come from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The brokers, which need not be there yet.
    pub brokers: String,
    /// What the topics are called there.
    pub topics: Topics,
    /// Replicas of a consumer share the work under this name.
    pub group: String,
}

/// Why a message had no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It never will; the text says why.
    Poison(String),
    /// It may later; the text says what is missing.
    Transient(String),
}

/// What a message does.
pub trait Effect: Send + Sync + 'static {
    /// Does it. Repeating it must be harmless.
    fn apply(
        &self,
        message: &Incoming,
    ) -> impl Future<Output = std::result::Result<(), Failure>> + Send;
}

/// Rebalancing needs nothing from us. librdkafka calls back only from within a poll, and this loop
/// polls only when every message it took has been dealt with and its offset stored; with
/// `enable.auto.commit` librdkafka commits stored offsets itself before it gives partitions away.
impl ConsumerContext for Quiet {}

/// Reads the topics that daegi listens to.
pub struct Consumer<E> {
    consumer: StreamConsumer<Quiet>,
    work: Work<E>,
}

impl<E: Effect> Consumer<E> {
    /// A consumer of this source.
    ///
    /// # Errors
    /// If librdkafka refuses the addresses.
    pub fn new(source: Source, effect: E) -> Result<Self> {
        let Source { brokers, topics, group } = source;
        let consumer: StreamConsumer<Quiet> = client::config(&brokers)
            .set("group.id", group)
            // A new group begins with everything there is: the compacted topic is the catalogue.
            .set("auto.offset.reset", "earliest")
            // librdkafka commits by itself, every few seconds and when it gives partitions away,
            // but only what `store_offset` was called for: after the effect, never before.
            .set("enable.auto.commit", "true")
            .set("enable.auto.offset.store", "false")
            // A dead replica is missed this long. One that lives but cannot reach its store is
            // replaced after `max.poll.interval.ms` (5 minutes), in case another one can.
            .set("session.timeout.ms", "10000")
            .set("topic.metadata.refresh.interval.ms", "10000")
            .create_with_context(Quiet)?;
        consumer.subscribe(&Topic::IN.map(|topic| topics.name(topic)))?;
        let dead_letters = Publisher::new(&brokers)?;
        Ok(Self { consumer, work: Work::new(effect, dead_letters, topics) })
    }

    /// Reads until told to stop; what is under way then is finished, unless it waits for
    /// somebody, and stored offsets are committed.
    pub async fn run(self, stop: CancellationToken) {
        let Self { consumer, work } = self;
        let consumer = Arc::new(consumer);
        {
            let mut chunks = consumer.stream().ready_chunks(CHUNK);
            while let Some(Some(chunk)) = stop.run_until_cancelled(chunks.next()).await {
                take(chunk, &consumer, &work, &stop).await;
            }
        }
        // Both block: the commit until it is answered, the drop until the group knows.
        let last_words = tokio::task::spawn_blocking(move || {
            if let Err(error) = consumer.commit_consumer_state(CommitMode::Sync) {
                tracing::debug!(%error, "nothing was committed at the end");
            }
        });
        // A broker that is away must not hold up the end; what it was not told is read again.
        let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
    }
}

/// Deals with a chunk, partitions side by side.
async fn take<E: Effect>(
    chunk: Vec<std::result::Result<BorrowedMessage<'_>, KafkaError>>,
    consumer: &StreamConsumer<Quiet>,
    work: &Work<E>,
    stop: &CancellationToken,
) {
    let mut partitions: BTreeMap<(Topic, i32), Vec<Incoming>> = BTreeMap::new();
    let mut trouble = false;
    for message in chunk {
        match message {
            Ok(message) => {
                if let Some(incoming) = Incoming::of(&message, work.topics()) {
                    partitions.entry(incoming.place()).or_default().push(incoming);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "kafka has no message");
                trouble = true;
            }
        }
    }
    join_all(partitions.into_values().map(|messages| work.partition(messages, consumer, stop)))
        .await;
    if trouble {
        stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
    }
}

impl<E> std::fmt::Debug for Consumer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}
