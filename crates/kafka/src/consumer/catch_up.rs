//! Reading a partition again, from its beginning or from a point in time.
//!
//! Offsets live in Kafka, what messages did lives elsewhere and may get lost there. So whoever
//! keeps it also keeps a note: that a partition is being read, and later that it was read to its
//! end. No note, and it is read again. The note is written when the group's offset is known to be
//! at the beginning, so whoever has the partition next goes on where the group's offset says, and
//! neither a replica that dies nor a loss in the middle makes a half-read partition look complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rdkafka::consumer::{CommitMode, Consumer as _, StreamConsumer};
use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};

use super::partition::Work;
use super::{Effect, Member, Missing, Standing};

/// How long librdkafka may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The partitions this replica reads again.
#[derive(Debug, Default)]
pub(super) struct CatchUp {
    /// All of this belongs to one assignment; the next one begins with nothing.
    era: u64,
    /// Partitions of which it is known where to begin.
    settled: BTreeSet<i32>,
    /// Those that were begun, and whether their end was seen.
    reading: BTreeMap<i32, bool>,
}

/// What came of one look at the partitions.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// Partitions that went back to their beginning: what was read of them before counts for nothing.
    pub(super) begun: BTreeSet<i32>,
    /// Why it is not known where some partitions stand.
    pub(super) missing: Option<Missing>,
}

impl CatchUp {
    /// Whether it is known where to begin in a partition of the present assignment.
    pub(super) fn is_settled(&self, partition: i32) -> bool {
        self.settled.contains(&partition)
    }

    /// Begins to read again what must be, and confirms what is complete. A partition that must go back
    /// has its worker cancelled (`cancel` returns whether one runs) and goes back by the next look after
    /// the worker has ended, because a worker could store an offset behind the beginning.
    pub(super) async fn look<E: Effect>(
        &mut self,
        consumer: &Arc<StreamConsumer<Member>>,
        work: &Work<E>,
        cancel: impl Fn(i32) -> bool,
    ) -> Looked {
        let era = consumer.context().era();
        if era != self.era {
            *self = Self { era, ..Self::default() };
        }
        let partitions = assigned(consumer);
        let standings = partitions.iter().map(|partition| self.standing(*partition, work));
        let standings = join_all(standings).await;
        let mut looked = Looked::default();
        let mut fresh = None;
        for (partition, standing) in partitions.into_iter().zip(standings) {
            let followed = match standing {
                Ok(Standing::Lost) if cancel(partition) => continue,
                Ok(Standing::Lost) => {
                    self.reading.remove(&partition);
                    let begun = &mut looked.begun;
                    self.begin(partition, consumer, work, &mut fresh, begun).await
                }
                Ok(Standing::Partly) => {
                    self.reading.entry(partition).or_insert(false);
                    Ok(())
                }
                Ok(Standing::Whole) => {
                    self.reading.remove(&partition);
                    Ok(())
                }
                Err(missing) => Err(missing),
            };
            match followed {
                Ok(()) => drop(self.settled.insert(partition)),
                Err(missing) => looked.missing = Some(missing),
            }
        }
        if !looked.begun.is_empty() {
            let partitions = &looked.begun;
            tracing::info!(topic = %E::TOPIC, ?partitions, "reading again from the beginning");
        }
        looked
    }

    /// The end of this partition was seen, after all its records had their effect. Returns whether
    /// that is to be noted.
    pub(super) fn end(&mut self, partition: i32, era: u64) -> bool {
        let reading = self.reading.get_mut(&partition).filter(|_| era == self.era);
        reading.is_some_and(|end_seen| !std::mem::replace(end_seen, true))
    }

    /// Takes a lost partition back to its beginning and notes that it is read.
    async fn begin<E: Effect>(
        &mut self,
        partition: i32,
        consumer: &Arc<StreamConsumer<Member>>,
        work: &Work<E>,
        fresh: &mut Option<BTreeSet<i32>>,
        begun: &mut BTreeSet<i32>,
    ) -> Result<(), Missing> {
        // Nothing of a new assignment was taken yet: without an offset, it is at the beginning.
        let is_new = !self.is_settled(partition);
        if is_new && fresh.is_none() {
            *fresh = Some(without_offset(consumer.clone()).await?);
        }
        let is_fresh = fresh.as_ref().is_some_and(|fresh| fresh.contains(&partition));
        if !(is_new && is_fresh) {
            let topic = work.topics().name(E::TOPIC).to_owned();
            let since = work.effect().replay_from();
            go_back(consumer.clone(), topic, partition, since).await?;
            work.reads_again(partition);
            begun.insert(partition);
        }
        work.effect().begin(partition).await?;
        self.reading.entry(partition).or_insert(false);
        Ok(())
    }

    /// Where a partition stands, now that its end was noted if it was seen.
    async fn standing<E: Effect>(
        &self,
        partition: i32,
        work: &Work<E>,
    ) -> Result<Standing, Missing> {
        if self.reading.get(&partition) == Some(&true) {
            work.effect().end(partition).await?;
        }
        work.effect().standing(partition).await
    }
}

/// The partitions of the present assignment.
pub(super) fn assigned(consumer: &StreamConsumer<Member>) -> Vec<i32> {
    let partitions = consumer.assignment();
    let partitions = partitions.iter().flat_map(|list| list.elements());
    partitions.map(|element| element.partition()).collect()
}

/// The partitions whose group has never committed an offset.
async fn without_offset(consumer: Arc<StreamConsumer<Member>>) -> Result<BTreeSet<i32>, Missing> {
    let committed = blocking(move || consumer.committed(PATIENCE)).await?;
    let elements = committed.elements();
    let fresh = elements.iter().filter(|element| element.offset() == Offset::Invalid);
    Ok(fresh.map(|element| element.partition()).collect())
}

/// First the group, then this replica. A replica that has lost the partition without knowing is
/// refused here, and a partition that could not go back yet is tried again by the next look.
async fn go_back(
    consumer: Arc<StreamConsumer<Member>>,
    topic: String,
    partition: i32,
    since: Option<u64>,
) -> Result<(), Missing> {
    blocking(move || {
        // Where messages have expired, the log's beginning is the first offset there is.
        let first = match since {
            Some(since) => first_since(&consumer, &topic, partition, since)?,
            None => 0,
        };
        let mut beginning = TopicPartitionList::new();
        beginning.add_partition_offset(&topic, partition, Offset::Offset(first))?;
        // Else librdkafka would soon commit the higher offset that was stored before.
        consumer.store_offsets(&beginning)?;
        consumer.commit(&beginning, CommitMode::Sync)?;
        let first = if first == 0 { Offset::Beginning } else { Offset::Offset(first) };
        consumer.seek(&topic, partition, first, PATIENCE)
    })
    .await
}

/// The offset of the first record written since then. 0 if there is none, or if the broker cannot look
/// it up: the effect skips older records.
fn first_since(
    consumer: &StreamConsumer<Member>,
    topic: &str,
    partition: i32,
    since: u64,
) -> KafkaResult<i64> {
    let mut times = TopicPartitionList::new();
    let since = i64::try_from(since).unwrap_or(i64::MAX);
    times.add_partition_offset(topic, partition, Offset::Offset(since))?;
    let found = consumer.offsets_for_times(times, PATIENCE)?;
    let found = found.find_partition(topic, partition).map(|element| element.offset());
    Ok(if let Some(Offset::Offset(offset)) = found { offset } else { 0 })
}

/// librdkafka answers these when its threads or the broker have.
pub(super) async fn blocking<T: Send + 'static>(
    ask: impl FnOnce() -> KafkaResult<T> + Send + 'static,
) -> Result<T, Missing> {
    let asked = tokio::task::spawn_blocking(ask).await;
    let asked = asked.map_err(|error| Missing(error.to_string()))?;
    asked.map_err(|error| Missing(error.to_string()))
}
