//! The records of one partition, one after the other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daegi_domain::Topics;
use metrics::counter;
use rdkafka::consumer::{CommitMode, Consumer as _, StreamConsumer};
use rdkafka::error::KafkaResult;
use rdkafka::message::BorrowedMessage;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dead_letter::DeadLetter;
use super::queues::{Job, Unapplied};
use super::reading::{Message, Position, Read, Run};
use super::{Effect, Halt, Incoming, Member, Poison};
use crate::{Publisher, meters};

/// The first delay before an attempt is repeated; doubles up to the longest.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(3);

/// What is done with every record.
pub(super) struct Work<E> {
    effect: E,
    dead_letters: Publisher,
    topics: Topics,
    letters: Mutex<BTreeMap<i32, Letters>>,
}

/// What this replica has sent to the dead letters of a partition.
#[derive(Debug, Clone, Copy)]
struct Letters {
    last: i64,
    /// Whether the partition is read again since, so that old poison comes by.
    again: bool,
}

/// What a worker has finished.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) partition: i32,
    pub(super) era: u64,
    /// Whether the end of the partition was seen behind records that all had their effect.
    pub(super) has_end: bool,
    /// Whether it was cancelled, perhaps after its last record.
    pub(super) is_cancelled: bool,
}

/// Where records come from.
struct Place<'a> {
    topic: &'a str,
    event_type: &'static str,
    partition: i32,
    era: u64,
    consumer: &'a StreamConsumer<Member>,
    cancel: &'a CancellationToken,
    unapplied: &'a Unapplied,
}

/// The attempts of one record, logged when they begin to fail and when one succeeds.
struct Outage<'a> {
    place: &'a Place<'a>,
    what: &'static str,
    /// Since when, and which record.
    held: Option<(Instant, i64)>,
    backoff: Duration,
}

impl<E: Effect> Work<E> {
    pub(super) fn new(effect: E, dead_letters: Publisher, topics: Topics) -> Self {
        Self { effect, dead_letters, topics, letters: Mutex::default() }
    }

    pub(super) fn effect(&self) -> &E {
        &self.effect
    }

    pub(super) fn topics(&self) -> &Topics {
        &self.topics
    }

    /// What a record says, as soon as it is there.
    pub(super) fn read(&self, message: KafkaResult<BorrowedMessage<'_>>) -> Read<E::Meaning> {
        let message = match &message {
            Ok(message) => Incoming::of(message, E::TOPIC),
            Err(error) => return Read::failed(error),
        };
        let (partition, offset) = (message.partition, message.offset);
        let said = self
            .effect
            .read(&message)
            .map_err(|Poison(reason)| Box::new(DeadLetter::new(&message, &reason, &self.topics)));
        let bytes = match &said {
            Ok(_) => message.key.map_or(0, <[u8]>::len) + message.body.map_or(0, <[u8]>::len),
            Err(letter) => letter.bytes(),
        };
        Read::Message(Message { partition, offset, bytes, said })
    }

    /// Gives a batch its effect in order and stores offsets; ends early when cancelled.
    pub(super) async fn batch(
        self: Arc<Self>,
        job: Job<E::Meaning>,
        consumer: Arc<StreamConsumer<Member>>,
    ) -> Finished {
        let Job { partition, era, batch, cancel, unapplied } = job;
        let place = Place {
            topic: self.topics.name(E::TOPIC),
            event_type: E::TOPIC.event_type(),
            partition,
            era,
            consumer: &consumer,
            cancel: &cancel,
            unapplied: &unapplied,
        };
        let mut is_whole = true;
        for mut run in batch.runs {
            is_whole = !cancel.is_cancelled()
                && self.apply(&run, &place).await
                && !cancel.is_cancelled()
                && self.bury(&mut run, &place).await;
            if !is_whole {
                break;
            }
        }
        unapplied.set(None);
        let (has_end, is_cancelled) = (is_whole && batch.has_end, cancel.is_cancelled());
        Finished { partition, era, has_end, is_cancelled }
    }

    /// The effect of a run, however long it takes. Returns `false` if it was cancelled before.
    async fn apply(&self, run: &Run<E::Meaning>, place: &Place<'_>) -> bool {
        let mut outage = Outage::new(place, "record cannot be applied");
        let mut done = 0;
        while let Some(next) = run.positions.get(done) {
            place.unapplied.set(Some(next.seen));
            let left = &run.meanings[done..];
            let halted = self.effect.apply(left).await.err();
            let had = halted.as_ref().map_or(left.len(), |halt| halt.done);
            counter!(meters::APPLIED, "topic" => place.event_type).increment(had as u64);
            done += had;
            if had > 0 {
                place.store_offset(run.positions[done - 1]);
                outage.end();
            }
            if let Some((Halt { missing, .. }, held)) = halted.zip(run.positions.get(done)) {
                place.unapplied.set(Some(held.seen));
                if !outage.wait(held.offset, &missing.0).await {
                    return false;
                }
            }
        }
        true
    }

    /// Poison goes to the dead letters. The reason is in there and not in the log, because it may
    /// quote the record. Returns `false` if it was cancelled before.
    async fn bury(&self, run: &mut Run<E::Meaning>, place: &Place<'_>) -> bool {
        let Some((position, mut letter)) = run.poison.take() else { return true };
        place.unapplied.set(Some(position.seen));
        if self.is_buried(place.partition, position.offset) {
            place.store_offset(position);
            return true;
        }
        let mut outage = Outage::new(place, "dead letter cannot be written");
        while let Err(error) = self.dead_letters.publish(&[letter.record()]).await {
            let is_smaller = error.is_too_large() && letter.shrink();
            if !is_smaller && !outage.wait(position.offset, &error.to_string()).await {
                return false;
            }
        }
        outage.end();
        counter!(meters::DEAD_LETTERS, "topic" => place.event_type).increment(1);
        tracing::warn!(
            topic = place.event_type,
            partition = place.partition,
            offset = position.offset,
            "record cannot be used and was written to the dead-letter topic"
        );
        let letters = Letters { last: position.offset, again: false };
        self.letters().insert(place.partition, letters);
        place.store_offset(position);
        place.commit();
        true
    }

    /// A partition went back to its beginning.
    pub(super) fn reads_again(&self, partition: i32) {
        if let Some(letters) = self.letters().get_mut(&partition) {
            letters.again = true;
        }
    }

    /// Whether this replica has sent a message to the dead letters before. Another one, after this
    /// one's death, sends it again.
    fn is_buried(&self, partition: i32, offset: i64) -> bool {
        let letters = self.letters().get(&partition).copied();
        letters.is_some_and(|letters| letters.again && offset <= letters.last)
    }

    fn letters(&self) -> MutexGuard<'_, BTreeMap<i32, Letters>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Outage<'a> {
    fn new(place: &'a Place<'a>, what: &'static str) -> Self {
        Self { place, what, held: None, backoff: FIRST_BACKOFF }
    }

    /// Waits before the record at this offset is tried again. Returns `false` if it is not to be.
    async fn wait(&mut self, offset: i64, error: &str) -> bool {
        let Place { event_type: topic, partition, cancel, .. } = *self.place;
        counter!(meters::RETRIES, "topic" => topic).increment(1);
        if self.held.is_none() {
            self.held = Some((Instant::now(), offset));
            let what = self.what;
            tracing::warn!(topic, partition, offset, error, "{what}, partition held and retrying");
        }
        let waited = cancel.run_until_cancelled(tokio::time::sleep(self.backoff)).await;
        self.backoff = (self.backoff * 2).min(MAX_BACKOFF);
        if waited.is_none() {
            tracing::info!(topic, partition, offset, "retrying stopped, the record is read again");
        }
        waited.is_some()
    }

    /// An attempt succeeded.
    fn end(&mut self) {
        self.backoff = FIRST_BACKOFF;
        if let Some((since, offset)) = self.held.take() {
            let Place { event_type: topic, partition, .. } = *self.place;
            let seconds = since.elapsed().as_secs();
            tracing::info!(topic, partition, offset, seconds, "record applied, partition goes on");
        }
    }
}

impl Place<'_> {
    /// Fails only for a partition that was taken away meanwhile: its new owner repeats.
    fn store_offset(&self, position: Position) {
        // The partition may have been away and come back to an earlier offset.
        if self.consumer.context().era() != self.era {
            return;
        }
        let offset = position.offset;
        if let Err(error) = self.consumer.store_offset(self.topic, self.partition, offset) {
            tracing::debug!(%error, "offset not stored");
        }
    }

    /// A dead letter cannot be taken back, so its offset does not wait for the next commit: what a
    /// replica repeats that is thrown out of its group seldom has one in it.
    fn commit(&self) {
        if let Err(error) = self.consumer.commit_consumer_state(CommitMode::Async) {
            tracing::debug!(%error, "offsets not committed");
        }
    }
}
