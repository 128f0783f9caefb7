//! The loop that turns messages into effects.
//!
//! | what happens | what becomes of the message |
//! |---|---|
//! | the effect is there | its offset is stored, the next one of its partition follows |
//! | the message is poison | it goes to the dead letters with its reason, then as above |
//! | the effect must wait, or the dead letter cannot be written | tried again with growing pauses; its partition is held, others go on |
//! | the process ends or dies | read again by whoever has the partition next |
//! | what earlier ones did is lost | the whole partition is read again from its beginning |
//!
//! So every effect must be harmless when repeated. A partition keeps its order and waits for no other
//! one: `dispatch` reads the topic into one queue per partition (`queues`), and `partition` is the worker
//! that gives the records of one queue their effect.

mod catch_up;
mod dead_letter;
mod dispatch;
mod incoming;
mod member;
mod partition;
mod queues;
mod reading;

use std::future::Future;
use std::sync::Arc;

use daegi_domain::{Topic, Topics};
use rdkafka::consumer::{Consumer as _, StreamConsumer};
use tokio_util::sync::CancellationToken;

use crate::{Publisher, Result, client};
use dispatch::Dispatcher;
pub use incoming::Incoming;
pub use member::Lag;
use member::Member;
use partition::Work;

/// Where messages come from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The brokers, which need not be there yet.
    pub brokers: String,
    /// What the topics are called there.
    pub topics: Topics,
    /// Replicas of a consumer share the work under this name, topic by topic.
    pub group: String,
}

/// Some messages had their effect, and then one had not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    /// How many had. Later ones may have had theirs, too; they come again.
    pub done: usize,
    /// What the next one waits for.
    pub missing: Missing,
}

/// What the messages of a topic do.
pub trait Effect: Send + Sync + 'static {
    /// Whose messages.
    const TOPIC: Topic;

    /// What a message says.
    type Meaning: Send + Sync;

    /// Understands a message, or says why nobody ever will.
    fn read(&self, message: &Incoming<'_>) -> std::result::Result<Self::Meaning, Poison>;

    /// Does what these messages of one partition say, in their order, as far as possible.
    /// Repeating it must be harmless.
    fn apply(
        &self,
        meanings: &[Self::Meaning],
    ) -> impl Future<Output = std::result::Result<(), Halt>> + Send;

    /// From when on records count if a partition is read again, in unix milliseconds; `None` reads it
    /// from its beginning. A group without an offset reads from the beginning in either case.
    fn replay_from(&self) -> Option<u64> {
        None
    }

    /// How much of what the messages of a partition did is there.
    fn standing(
        &self,
        partition: i32,
    ) -> impl Future<Output = std::result::Result<Standing, Missing>> + Send;

    /// Notes that a lost partition is read from its beginning, by whoever has it.
    fn begin(
        &self,
        partition: i32,
    ) -> impl Future<Output = std::result::Result<(), Missing>> + Send;

    /// Notes that a partition has been read to its end, unless it was lost meanwhile.
    fn end(&self, partition: i32) -> impl Future<Output = std::result::Result<(), Missing>> + Send;
}

/// Why a message never has an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poison(pub String);

/// What an effect waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub String);

/// How much of what the messages of a partition did is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing (any more), or nobody knows: it must be read from its beginning.
    Lost,
    /// What is before the group's offset.
    Partly,
    /// All of it, up to its end when it was last reached.
    Whole,
}

/// Reads one of the topics that daegi listens to.
pub struct Consumer<E> {
    consumer: Arc<StreamConsumer<Member>>,
    work: Arc<Work<E>>,
}

impl<E: Effect> Consumer<E> {
    /// A consumer of this source.
    ///
    /// # Errors
    /// If librdkafka refuses the addresses.
    pub fn new(source: Source, effect: E) -> Result<Self> {
        let Source { brokers, topics, group } = source;
        let consumer: StreamConsumer<Member> = client::config(&brokers)
            // A group per topic: the rebalancing of one does not stop the other.
            .set("group.id", format!("{group}.{}", E::TOPIC))
            // A new group begins with everything there is: the compacted topic is the catalogue.
            .set("auto.offset.reset", "earliest")
            // librdkafka commits by itself, every few seconds and when it gives partitions away,
            // but only what `store_offset` was called for: after the effect, never before.
            .set("enable.auto.commit", "true")
            .set("enable.auto.offset.store", "false")
            // Says when a partition has been read to its end.
            .set("enable.partition.eof", "true")
            // A dead replica is missed this long. One that lives but cannot reach its store is
            // replaced after `max.poll.interval.ms` (5 minutes), in case another one can.
            .set("session.timeout.ms", "10000")
            .set("topic.metadata.refresh.interval.ms", "10000")
            // librdkafka reads ahead and pauses when it has enough. Its pause of a second is
            // longer than we need to use all of that up.
            .set("fetch.queue.backoff.ms", "10")
            .set("statistics.interval.ms", "5000")
            .create_with_context(Member::new(E::TOPIC))?;
        consumer.subscribe(&[topics.name(E::TOPIC)])?;
        let work = Arc::new(Work::new(effect, Publisher::new(&brokers)?, topics));
        Ok(Self { consumer: Arc::new(consumer), work })
    }

    /// How far it is behind.
    #[must_use]
    pub fn lag(&self) -> Lag {
        Lag(Arc::clone(self.consumer.context()))
    }

    /// Reads until told to stop; attempts that are under way then are finished, and stored offsets
    /// are committed.
    pub async fn run(self, stop: CancellationToken) {
        Dispatcher::new(self.consumer, self.work, stop).run().await;
    }
}

impl<E> std::fmt::Debug for Consumer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}
