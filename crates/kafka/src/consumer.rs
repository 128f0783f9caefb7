//! The loop that turns messages into effects.
//!
//! | what happens | what becomes of the message |
//! |---|---|
//! | the effect is there | its offset is stored, the next one of its partition follows |
//! | the message is poison | it goes to the dead letters with its reason, then as above |
//! | the effect must wait | tried again with growing pauses; nothing of its partition passes it |
//! | the process ends or dies | read again by whoever has the partition next |
//! | what earlier ones did is lost | the whole partition is read again from its beginning |
//!
//! So every effect must be harmless when repeated. Partitions go side by side, each in order.

mod catch_up;
mod dead_letter;
mod incoming;
mod member;
mod partition;
mod reading;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{Topic, Topics};
use futures_util::{FutureExt, StreamExt};
use rdkafka::consumer::{CommitMode, Consumer as _, StreamConsumer};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::{Publisher, Result, client};
use catch_up::CatchUp;
pub use incoming::Incoming;
pub use member::Lag;
use member::Member;
use partition::Work;
use reading::Ended;

/// How many messages have their effect in one go, while as many are read: what bounds memory while
/// the store is slow. Large, so that the many changes of a hot item become one.
const CHUNK: usize = 16_384;

/// How many messages are read before somebody else on the same thread has a turn.
const PIECE: usize = 1_024;

/// How often a consumer looks whether what it read is still there.
const LOOK: Duration = Duration::from_secs(1);

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
    catch_up: CatchUp,
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
        Ok(Self { consumer: Arc::new(consumer), work, catch_up: CatchUp::default() })
    }

    /// How far it is behind.
    #[must_use]
    pub fn lag(&self) -> Lag {
        Lag(Arc::clone(self.consumer.context()))
    }

    /// Reads until told to stop; what is under way then is finished, unless it waits for
    /// somebody, and stored offsets are committed.
    pub async fn run(mut self, stop: CancellationToken) {
        let (consumer, work) = (self.consumer.clone(), self.work.clone());
        let messages = consumer.stream().map(|message| work.read(message));
        let mut chunks = messages.ready_chunks(PIECE);
        // The next chunk is read and understood while this one has its effect, and grows meanwhile.
        let (mut this, mut next) = (JoinSet::new(), Vec::new());
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let begun = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(ended) = this.join_next() => self.ended(ended, &stop).await,
                _ = looks.tick(), if this.is_empty() => self.look().await,
                Some(mut more) = chunks.next(), if next.len() < CHUNK => {
                    next.append(&mut more);
                    BTreeSet::new()
                }
            };
            reading::forget(&mut next, &begun);
            if this.is_empty() && !next.is_empty() {
                let is_due = looks.tick().now_or_never().is_some();
                let begun = self.settle(is_due, &stop).await;
                reading::forget(&mut next, &begun);
                let chunk = std::mem::take(&mut next);
                this.spawn(self.work.clone().chunk(chunk, consumer.clone(), stop.clone()));
                // tokio keeps a new task for the thread that made it, which would read on first.
                tokio::task::yield_now().await;
            }
        }
        while let Some(ended) = this.join_next().await {
            self.ended(ended, &stop).await;
        }
        drop(chunks);
        drop(consumer);
        self.last_words().await;
    }

    /// A look that fails is repeated, if only by the next tick. Says which partitions went back.
    async fn look(&mut self) -> BTreeSet<i32> {
        let mut begun = BTreeSet::new();
        let looked = self.catch_up.look(&self.consumer, &self.work, &mut begun).await;
        if let Err(missing) = looked {
            tracing::debug!(?missing, "not known whether to read again");
        }
        begun
    }

    /// Before the first messages of an assignment have an effect it must be known whether they
    /// are to be read again, or some would have it twice. Says which partitions went back.
    async fn settle(&mut self, is_due: bool, stop: &CancellationToken) -> BTreeSet<i32> {
        let mut begun = if is_due { self.look().await } else { BTreeSet::new() };
        while !self.catch_up.is_settled(&self.consumer) && !stop.is_cancelled() {
            let looked = self.catch_up.look(&self.consumer, &self.work, &mut begun).await;
            if let Err(missing) = looked {
                self.work.in_trouble(&missing);
                stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
            }
        }
        begun
    }

    /// After a chunk: partitions may have been read to their end. Says which went back.
    async fn ended(
        &mut self,
        ended: std::result::Result<Ended, JoinError>,
        stop: &CancellationToken,
    ) -> BTreeSet<i32> {
        let ended = ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        let begun = if !stop.is_cancelled() && self.catch_up.ends(ended.ends.into_iter()) {
            self.look().await
        } else {
            BTreeSet::new()
        };
        if ended.trouble {
            stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
        }
        begun
    }

    /// A broker that is away must not hold up the end; what it was not told is read again.
    async fn last_words(self) {
        // Both block: the commit until it is answered, the drop until the group knows.
        let said = tokio::task::spawn_blocking(move || {
            if let Err(error) = self.consumer.commit_consumer_state(CommitMode::Sync) {
                tracing::debug!(%error, "nothing was committed at the end");
            }
        });
        let _ = tokio::time::timeout(LAST_WORDS, said).await;
    }
}

impl<E> std::fmt::Debug for Consumer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").finish_non_exhaustive()
    }
}
