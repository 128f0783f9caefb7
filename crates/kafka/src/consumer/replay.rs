//! Replay: reads a partition again, from its start or from a point in time.
//!
//! Kafka keeps the offsets, the store keeps the effects and may lose them. The store therefore also
//! keeps the replay progress of each partition: started, then complete. Without it the partition is
//! replayed. It is recorded as started after the group's offset was set to the start, so that the
//! next owner of the partition continues at the group's offset. Neither a replica that dies nor a
//! data loss during a replay makes a half-read partition look complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rdkafka::consumer::{CommitMode, Consumer as _};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};
use tokio::sync::oneshot;

use super::group_consumer::GroupConsumer;
use super::processor::Processor;
use super::{MessageHandler, ReplayProgress, RetryLater};

/// Timeout of one call to the broker.
const BROKER_TIMEOUT: Duration = Duration::from_secs(5);

/// The partitions that this replica replays.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// The assignment that the fields below belong to; the next one starts with empty fields.
    generation: u64,
    /// Partitions whose start offset is known.
    known: BTreeSet<i32>,
    /// Partitions whose replay has started, and whether their end was reached.
    reading: BTreeMap<i32, bool>,
}

/// The result of one check of the partitions.
#[derive(Debug, Default)]
pub(super) struct ReplayCheck {
    /// Partitions that were rewound: records of them that were read before must be dropped.
    pub(super) rewound: BTreeSet<i32>,
    /// Why the replay progress of some partitions is unknown.
    pub(super) error: Option<RetryLater>,
}

impl Replay {
    /// Returns whether the start offset of a partition of the current assignment is known.
    pub(super) fn is_known(&self, partition: i32) -> bool {
        self.known.contains(&partition)
    }

    /// Starts the replays that are needed and records those that are complete. A partition that
    /// must be rewound first has its worker cancelled (`cancel` returns whether one runs) and is
    /// rewound by the next check after the worker has ended, because a running worker could store a
    /// later offset.
    pub(super) async fn check<E: MessageHandler>(
        &mut self,
        consumer: &Arc<GroupConsumer>,
        processor: &Processor<E>,
        cancel: impl Fn(i32) -> bool,
    ) -> ReplayCheck {
        let generation = consumer.context().generation();
        if generation != self.generation {
            *self = Self { generation, ..Self::default() };
        }
        let partitions = assigned(consumer);
        let progress =
            partitions.iter().map(|partition| self.replay_progress(*partition, processor));
        let progress = join_all(progress).await;
        let mut checked = ReplayCheck::default();
        let mut fresh = None;
        for (partition, progress) in partitions.into_iter().zip(progress) {
            let followed = match progress {
                Ok(ReplayProgress::NotStarted) if cancel(partition) => continue,
                Ok(ReplayProgress::NotStarted) => {
                    self.reading.remove(&partition);
                    let rewound = &mut checked.rewound;
                    self.begin_replay(partition, consumer, processor, &mut fresh, rewound).await
                }
                Ok(ReplayProgress::InProgress) => {
                    self.reading.entry(partition).or_insert(false);
                    Ok(())
                }
                Ok(ReplayProgress::Complete) => {
                    self.reading.remove(&partition);
                    Ok(())
                }
                Err(error) => Err(error),
            };
            match followed {
                Ok(()) => drop(self.known.insert(partition)),
                Err(error) => checked.error = Some(error),
            }
        }
        if !checked.rewound.is_empty() {
            let partitions = &checked.rewound;
            tracing::info!(topic = %E::TOPIC, ?partitions, "replaying topic partitions");
        }
        checked
    }

    /// Marks that all records up to the end of a partition were applied. Returns whether the store
    /// must record it.
    pub(super) fn reached_end(&mut self, partition: i32, generation: u64) -> bool {
        let reading = self.reading.get_mut(&partition).filter(|_| generation == self.generation);
        reading.is_some_and(|end_seen| !std::mem::replace(end_seen, true))
    }

    /// Rewinds a partition and records that its replay has started.
    async fn begin_replay<E: MessageHandler>(
        &mut self,
        partition: i32,
        consumer: &Arc<GroupConsumer>,
        processor: &Processor<E>,
        fresh: &mut Option<BTreeSet<i32>>,
        rewound: &mut BTreeSet<i32>,
    ) -> Result<(), RetryLater> {
        // No record of a new assignment was applied yet. Without a committed offset it begins at the
        // start of the partition (`auto.offset.reset`), so it needs no rewind.
        let is_new = !self.is_known(partition);
        if is_new && fresh.is_none() {
            *fresh = Some(without_offset(consumer.clone()).await?);
        }
        let is_fresh = fresh.as_ref().is_some_and(|fresh| fresh.contains(&partition));
        if !(is_new && is_fresh) {
            let topic = processor.topics().name(E::TOPIC).to_owned();
            let since = processor.handler().replay_from();
            rewind(consumer.clone(), topic, partition, since).await?;
            processor.restart_partition(partition);
            rewound.insert(partition);
        }
        processor.handler().begin_replay(partition).await?;
        self.reading.entry(partition).or_insert(false);
        Ok(())
    }

    /// Records a replay that has reached the end, then reads the replay progress.
    async fn replay_progress<E: MessageHandler>(
        &self,
        partition: i32,
        processor: &Processor<E>,
    ) -> Result<ReplayProgress, RetryLater> {
        if self.reading.get(&partition) == Some(&true) {
            processor.handler().complete_replay(partition).await?;
        }
        processor.handler().replay_progress(partition).await
    }
}

/// Returns the partitions of the current assignment.
pub(super) fn assigned(consumer: &GroupConsumer) -> Vec<i32> {
    let partitions = consumer.assignment();
    let partitions = partitions.iter().flat_map(|list| list.elements());
    partitions.map(|element| element.partition()).collect()
}

/// Returns the partitions for which the group has never committed an offset.
async fn without_offset(consumer: Arc<GroupConsumer>) -> Result<BTreeSet<i32>, RetryLater> {
    let committed = blocking(move || consumer.committed(BROKER_TIMEOUT)).await?;
    let elements = committed.elements();
    let fresh = elements.iter().filter(|element| element.offset() == Offset::Invalid);
    Ok(fresh.map(|element| element.partition()).collect())
}

/// Rewinds the group's offset, then this replica. The broker rejects the commit of a replica that
/// no longer owns the partition. A rewind that fails is repeated by the next check.
async fn rewind(
    consumer: Arc<GroupConsumer>,
    topic: String,
    partition: i32,
    since: Option<u64>,
) -> Result<(), RetryLater> {
    blocking(move || {
        // Where messages have expired, offset 0 resolves to the first one that exists.
        let first = match since {
            Some(since) => first_since(&consumer, &topic, partition, since)?,
            None => 0,
        };
        let mut start = TopicPartitionList::new();
        start.add_partition_offset(&topic, partition, Offset::Offset(first))?;
        // Otherwise librdkafka would soon commit the higher offset that was stored before.
        consumer.store_offsets(&start)?;
        consumer.commit(&start, CommitMode::Sync)?;
        let first = if first == 0 { Offset::Beginning } else { Offset::Offset(first) };
        consumer.seek(&topic, partition, first, BROKER_TIMEOUT)
    })
    .await
}

/// Returns the offset of the first record written since then; 0 if the reply of the broker has none,
/// which is correct because the handler skips older records itself.
fn first_since(
    consumer: &GroupConsumer,
    topic: &str,
    partition: i32,
    since: u64,
) -> KafkaResult<i64> {
    let mut times = TopicPartitionList::new();
    let since = i64::try_from(since).unwrap_or(i64::MAX);
    times.add_partition_offset(topic, partition, Offset::Offset(since))?;
    let found = consumer.offsets_for_times(times, BROKER_TIMEOUT)?;
    let found = found.find_partition(topic, partition).map(|element| element.offset());
    Ok(if let Some(Offset::Offset(offset)) = found { offset } else { 0 })
}

/// Runs a librdkafka call that waits for its threads or the broker. It has its own thread, because
/// the runtime waits for blocking tasks before it ends and a commit has no timeout.
pub(super) async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> KafkaResult<T> + Send + 'static,
) -> Result<T, RetryLater> {
    let (done, outcome) = oneshot::channel();
    std::thread::spawn(move || done.send(call()));
    let outcome = outcome.await.map_err(|_| RetryLater("librdkafka call panicked".to_owned()))?;
    outcome.map_err(|error| RetryLater(error.to_string()))
}
