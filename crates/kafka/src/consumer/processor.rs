//! Applies the records of one partition in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::metrics::counter;
use daegi_domain::Topics;
use rdkafka::consumer::{CommitMode, Consumer as _};
use rdkafka::error::KafkaResult;
use rdkafka::message::BorrowedMessage;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dead_letter::DeadLetter;
use super::fetched::{Fetched, Message, MessageRun, Position};
use super::group_consumer::GroupConsumer;
use super::queues::{Job, Unapplied};
use super::{InboundMessage, MessageHandler, PartialFailure, Poison};
use crate::{Publisher, metrics};

/// Backoff between attempts: doubles from the first to the longest.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(3);

/// Decodes records, applies them and writes dead letters.
pub(super) struct Processor<E> {
    handler: E,
    dead_letters: Publisher,
    topics: Topics,
    letters: Mutex<BTreeMap<i32, DeadLetterLog>>,
}

/// The dead letters that this replica has written for a partition.
#[derive(Debug, Clone, Copy)]
struct DeadLetterLog {
    last: i64,
    /// Whether the partition was rewound since, so that old poison is read again.
    is_rewound: bool,
}

/// The result of a worker.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) partition: i32,
    pub(super) generation: u64,
    /// Whether all records up to the end of the partition were applied.
    pub(super) has_end: bool,
    /// Whether it was cancelled, possibly after its last record.
    pub(super) is_cancelled: bool,
}

/// The partition that a worker applies.
struct TopicPartition<'a> {
    topic: &'a str,
    event_type: &'static str,
    partition: i32,
    generation: u64,
    consumer: &'a GroupConsumer,
    cancel: &'a CancellationToken,
    unapplied: &'a Unapplied,
}

/// Backoff and log of attempts to apply a record: logs when they start to fail and when one succeeds.
struct Outage<'a> {
    place: &'a TopicPartition<'a>,
    what: &'static str,
    /// When the outage began, and the offset of the record that failed first; `None` without one.
    held: Option<(Instant, i64)>,
    backoff: Duration,
}

impl<E: MessageHandler> Processor<E> {
    pub(super) fn new(handler: E, dead_letters: Publisher, topics: Topics) -> Self {
        Self { handler, dead_letters, topics, letters: Mutex::default() }
    }

    pub(super) fn handler(&self) -> &E {
        &self.handler
    }

    pub(super) fn topics(&self) -> &Topics {
        &self.topics
    }

    /// Decodes a record while its buffer is borrowed from librdkafka.
    pub(super) fn decode(&self, message: KafkaResult<BorrowedMessage<'_>>) -> Fetched<E::Command> {
        let message = match &message {
            Ok(message) => InboundMessage::new(message, E::TOPIC),
            Err(error) => return Fetched::failed(error),
        };
        let (partition, offset) = (message.partition, message.offset);
        let decoded = self
            .handler
            .decode(&message)
            .map_err(|Poison(reason)| Box::new(DeadLetter::new(&message, &reason, &self.topics)));
        let bytes = match &decoded {
            Ok(_) => message.key.map_or(0, <[u8]>::len) + message.body.map_or(0, <[u8]>::len),
            Err(letter) => letter.bytes(),
        };
        Fetched::Message(Message { partition, offset, bytes, decoded })
    }

    /// Applies a batch in order and stores offsets. Stops early if cancelled.
    pub(super) async fn batch(
        self: Arc<Self>,
        job: Job<E::Command>,
        consumer: Arc<GroupConsumer>,
    ) -> Finished {
        let Job { partition, generation, batch, cancel, unapplied } = job;
        let place = TopicPartition {
            topic: self.topics.name(E::TOPIC),
            event_type: E::TOPIC.event_type(),
            partition,
            generation,
            consumer: &consumer,
            cancel: &cancel,
            unapplied: &unapplied,
        };
        let mut is_whole = true;
        for mut run in batch.runs {
            is_whole = !cancel.is_cancelled()
                && self.apply(&run, &place).await
                && !cancel.is_cancelled()
                && self.dead_letter(&mut run, &place).await;
            if !is_whole {
                break;
            }
        }
        unapplied.set(None);
        let (has_end, is_cancelled) = (is_whole && batch.has_end, cancel.is_cancelled());
        Finished { partition, generation, has_end, is_cancelled }
    }

    /// Applies a run, retrying until it succeeds. Returns `false` if it was cancelled before.
    async fn apply(&self, run: &MessageRun<E::Command>, place: &TopicPartition<'_>) -> bool {
        let mut outage = Outage::new(place, "record cannot be applied");
        let mut applied = 0;
        while let Some(next) = run.positions.get(applied) {
            place.unapplied.set(Some(next.seen));
            let left = &run.commands[applied..];
            let failed = self.handler.apply(left).await.err();
            let had = failed.as_ref().map_or(left.len(), |failure| failure.applied);
            counter!(metrics::APPLIED, "topic" => place.event_type).increment(had as u64);
            applied += had;
            if had > 0 {
                place.store_offset(run.positions[applied - 1]);
                outage.end();
            }
            if let Some((PartialFailure { cause, .. }, held)) =
                failed.zip(run.positions.get(applied))
            {
                place.unapplied.set(Some(held.seen));
                if !outage.wait(held.offset, &cause.0).await {
                    return false;
                }
            }
        }
        true
    }

    /// Writes poison to the dead-letter topic. The reason is in the letter and not in the log,
    /// because it may quote the record. Returns `false` if it was cancelled before.
    async fn dead_letter(
        &self,
        run: &mut MessageRun<E::Command>,
        place: &TopicPartition<'_>,
    ) -> bool {
        let Some((position, mut letter)) = run.poison.take() else { return true };
        place.unapplied.set(Some(position.seen));
        if self.is_dead_lettered(place.partition, position.offset) {
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
        counter!(metrics::DEAD_LETTERS, "topic" => place.event_type).increment(1);
        tracing::warn!(
            topic = place.event_type,
            partition = place.partition,
            offset = position.offset,
            "undecodable message sent to dead-letter topic"
        );
        let letters = DeadLetterLog { last: position.offset, is_rewound: false };
        self.letters().insert(place.partition, letters);
        place.store_offset(position);
        place.commit();
        true
    }

    /// Marks that a partition was rewound.
    pub(super) fn restart_partition(&self, partition: i32) {
        if let Some(letters) = self.letters().get_mut(&partition) {
            letters.is_rewound = true;
        }
    }

    /// Returns whether this replica wrote this dead letter before the partition was rewound. A
    /// replica that takes over the partition writes it again.
    fn is_dead_lettered(&self, partition: i32, offset: i64) -> bool {
        let letters = self.letters().get(&partition).copied();
        letters.is_some_and(|letters| letters.is_rewound && offset <= letters.last)
    }

    fn letters(&self) -> MutexGuard<'_, BTreeMap<i32, DeadLetterLog>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Outage<'a> {
    fn new(place: &'a TopicPartition<'a>, what: &'static str) -> Self {
        Self { place, what, held: None, backoff: FIRST_BACKOFF }
    }

    /// Waits for the backoff before the record at this offset is retried. Returns `false` if
    /// cancelled.
    async fn wait(&mut self, offset: i64, error: &str) -> bool {
        let TopicPartition { event_type: topic, partition, cancel, .. } = *self.place;
        counter!(metrics::RETRIES, "topic" => topic).increment(1);
        if self.held.is_none() {
            self.held = Some((Instant::now(), offset));
            let what = self.what;
            tracing::warn!(topic, partition, offset, error, "{what}, partition held, retrying");
        }
        let waited = cancel.run_until_cancelled(tokio::time::sleep(self.backoff)).await;
        self.backoff = (self.backoff * 2).min(MAX_BACKOFF);
        if waited.is_none() {
            tracing::info!(topic, partition, offset, "retrying stopped, record will be read again");
        }
        waited.is_some()
    }

    /// Ends the outage after an attempt succeeded.
    fn end(&mut self) {
        self.backoff = FIRST_BACKOFF;
        if let Some((since, offset)) = self.held.take() {
            let TopicPartition { event_type: topic, partition, .. } = *self.place;
            let seconds = since.elapsed().as_secs();
            tracing::info!(topic, partition, offset, seconds, "partition continues");
        }
    }
}

impl TopicPartition<'_> {
    /// Stores an offset. Fails only for a partition that was revoked meanwhile; its new owner
    /// repeats the record.
    fn store_offset(&self, position: Position) {
        // The partition may have been revoked and assigned again at an earlier offset.
        if self.consumer.context().generation() != self.generation {
            return;
        }
        let offset = position.offset;
        if let Err(error) = self.consumer.store_offset(self.topic, self.partition, offset) {
            tracing::debug!(%error, "offset not stored");
        }
    }

    /// Commits immediately after a dead letter, because a letter cannot be withdrawn. A replica
    /// that is removed from its group then rarely repeats one.
    fn commit(&self) {
        if let Err(error) = self.consumer.commit_consumer_state(CommitMode::Async) {
            tracing::debug!(%error, "offsets not committed");
        }
    }
}
