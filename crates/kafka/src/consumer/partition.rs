//! The messages of one partition, one after the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daegi_domain::Topics;
use futures_util::future::join_all;
use metrics::counter;
use rdkafka::consumer::{CommitMode, Consumer as _, StreamConsumer};
use rdkafka::error::KafkaResult;
use rdkafka::message::BorrowedMessage;
use tokio_util::sync::CancellationToken;

use super::reading::{Ended, Read, Run, Sorted};
use super::{Effect, Halt, Incoming, Member, Missing, Poison, dead_letter};
use crate::{Publisher, meters};

/// The first pause before an effect is tried again; doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// What is done with every message.
pub(super) struct Work<E> {
    effect: E,
    dead_letters: Publisher,
    topics: Topics,
    /// Whether something is missing, so that it is said once for all partitions.
    troubled: AtomicBool,
    letters: Mutex<BTreeMap<i32, Letters>>,
}

/// What this replica has sent to the dead letters of a partition.
#[derive(Debug, Clone, Copy)]
struct Letters {
    last: i64,
    /// Whether the partition is read again since, so that old poison comes by.
    again: bool,
}

/// Where messages come from.
struct Place<'a> {
    topic: &'a str,
    partition: i32,
    consumer: &'a StreamConsumer<Member>,
}

type Stop = CancellationToken;

impl<E: Effect> Work<E> {
    pub(super) fn new(effect: E, dead_letters: Publisher, topics: Topics) -> Self {
        let (troubled, letters) = (AtomicBool::new(false), Mutex::default());
        Self { effect, dead_letters, topics, troubled, letters }
    }

    pub(super) fn effect(&self) -> &E {
        &self.effect
    }

    pub(super) fn topics(&self) -> &Topics {
        &self.topics
    }

    /// What a message says, as soon as it is there.
    pub(super) fn read(&self, message: KafkaResult<BorrowedMessage<'_>>) -> Read<E::Meaning> {
        let message = match &message {
            Ok(message) => Incoming::of(message, E::TOPIC),
            Err(error) => return Read::failed(error),
        };
        let said = self.effect.read(&message);
        let said =
            said.map_err(|Poison(why)| dead_letter::record(&message, &why, &self.topics).into());
        Read::Message { partition: message.partition, offset: message.offset, said }
    }

    /// Deals with a chunk, partitions side by side.
    pub(super) async fn chunk(
        self: Arc<Self>,
        chunk: Vec<Read<E::Meaning>>,
        consumer: Arc<StreamConsumer<Member>>,
        stop: Stop,
    ) -> Ended {
        let Sorted { messages, ended } = Sorted::of(chunk);
        join_all(
            messages.iter().map(|(partition, messages)| {
                self.partition(*partition, messages, &consumer, &stop)
            }),
        )
        .await;
        ended
    }

    /// Deals with messages in order and stores offsets; ends early when told to stop.
    async fn partition(
        &self,
        partition: i32,
        messages: &[Run<E::Meaning>],
        consumer: &StreamConsumer<Member>,
        stop: &Stop,
    ) {
        let place = Place { topic: self.topics.name(E::TOPIC), partition, consumer };
        for run in messages {
            if !(self.apply(run, &place, stop).await && self.bury(run, &place, stop).await) {
                return;
            }
        }
        self.out_of_trouble();
    }

    /// The effect of a run, however long it takes; false if there was no time for all of it.
    async fn apply(&self, run: &Run<E::Meaning>, place: &Place<'_>, stop: &Stop) -> bool {
        let topic = E::TOPIC.event_type();
        let (mut done, mut pause) = (0, FIRST_PAUSE);
        while done < run.meanings.len() {
            let left = &run.meanings[done..];
            let halted = self.effect.apply(left).await.err();
            let had = halted.as_ref().map_or(left.len(), |halt| halt.done);
            counter!(meters::APPLIED, "topic" => topic).increment(had as u64);
            done += had;
            if had > 0 {
                place.store_offset(run.offsets[done - 1]);
                pause = FIRST_PAUSE;
            }
            if let Some(Halt { missing, .. }) = halted {
                counter!(meters::RETRIES, "topic" => topic).increment(1);
                if !self.wait(&missing, &mut pause, stop).await {
                    return false;
                }
            }
        }
        true
    }

    /// What nobody understands goes to the dead letters. The reason is in there and not in the log:
    /// it may quote the message.
    async fn bury(&self, run: &Run<E::Meaning>, place: &Place<'_>, stop: &Stop) -> bool {
        let Some((offset, letter)) = &run.poison else { return true };
        if self.is_buried(place.partition, *offset) {
            place.store_offset(*offset);
            return true;
        }
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.dead_letters.publish(std::slice::from_ref(&**letter)).await {
            if !self.wait(&Missing(error.to_string()), &mut pause, stop).await {
                return false;
            }
        }
        counter!(meters::DEAD_LETTERS, "topic" => E::TOPIC.event_type()).increment(1);
        tracing::warn!(
            topic = %E::TOPIC,
            partition = place.partition,
            offset,
            "a message that cannot be used went to the dead letters"
        );
        self.letters().insert(place.partition, Letters { last: *offset, again: false });
        place.store_offset(*offset);
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

    /// Waits before something is tried again; false if it is not to be.
    async fn wait(&self, missing: &Missing, pause: &mut Duration, stop: &Stop) -> bool {
        self.in_trouble(missing);
        let waited = stop.run_until_cancelled(tokio::time::sleep(*pause)).await;
        *pause = (*pause * 2).min(LONGEST_PAUSE);
        waited.is_some()
    }

    pub(super) fn in_trouble(&self, Missing(missing): &Missing) {
        if !self.troubled.swap(true, Ordering::SeqCst) {
            tracing::warn!(part = "consumer", error = missing, "in trouble, trying again");
        }
    }

    fn out_of_trouble(&self) {
        if self.troubled.swap(false, Ordering::SeqCst) {
            tracing::info!(part = "consumer", "out of trouble");
        }
    }
}

impl Place<'_> {
    /// Fails only for a partition that was taken away meanwhile: its new owner repeats.
    fn store_offset(&self, offset: i64) {
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
