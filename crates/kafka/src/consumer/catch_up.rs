//! Reading a partition again from its beginning.
//!
//! Offsets live in Kafka, what messages did lives elsewhere and may get lost there. So whoever
//! keeps it also keeps a note: that a partition is being read, and later that it was read to its
//! end. No note, and it is read again. The note is written when the group's offset is known to be
//! at the beginning, so whoever has the partition next goes on where the group's offset says, and
//! neither a replica that dies nor a loss in the middle makes a half-read partition look complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

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
    /// All of this belongs to one assignment; the next one begins anew.
    era: u64,
    /// Whether all partitions of the assignment were asked about.
    settled: bool,
    /// Those that were begun, and whether their end was seen.
    reading: BTreeMap<i32, bool>,
}

impl CatchUp {
    /// Whether it is known for every partition of the present assignment where to begin.
    pub(super) fn is_settled(&self, consumer: &StreamConsumer<Member>) -> bool {
        self.settled && self.era == consumer.context().era()
    }

    /// Begins to read again what must be, and confirms what is complete. Adds the partitions that
    /// went back to `begun`: what was read of them before counts for nothing.
    pub(super) async fn look<E: Effect>(
        &mut self,
        consumer: &Arc<StreamConsumer<Member>>,
        work: &Work<E>,
        begun: &mut BTreeSet<i32>,
    ) -> Result<(), Missing> {
        let (era, known) = (consumer.context().era(), begun.len());
        if era != self.era {
            *self = Self { era, ..Self::default() };
        }
        let looked = self.partitions(consumer, work, begun).await;
        self.settled |= looked.is_ok();
        if begun.len() > known {
            tracing::info!(topic = %E::TOPIC, partitions = ?begun, "reading again from the beginning");
        }
        looked
    }

    /// The ends of these partitions were seen, after all their messages had their effect.
    pub(super) fn ends(&mut self, partitions: impl Iterator<Item = i32>) -> bool {
        let mut news = false;
        for partition in partitions {
            if let Some(end_seen) = self.reading.get_mut(&partition) {
                (*end_seen, news) = (true, true);
            }
        }
        news
    }

    async fn partitions<E: Effect>(
        &mut self,
        consumer: &Arc<StreamConsumer<Member>>,
        work: &Work<E>,
        begun: &mut BTreeSet<i32>,
    ) -> Result<(), Missing> {
        let mut fresh = None;
        for partition in assigned(consumer) {
            match self.standing(partition, work).await? {
                Standing::Whole => continue,
                Standing::Partly => {}
                Standing::Lost => {
                    // Nothing of a new assignment was taken yet: without an offset, it is at the
                    // beginning.
                    if !self.settled && fresh.is_none() {
                        fresh = Some(without_offset(consumer.clone()).await?);
                    }
                    if !fresh.as_ref().is_some_and(|fresh| fresh.contains(&partition)) {
                        let topic = work.topics().name(E::TOPIC).to_owned();
                        go_back(consumer.clone(), topic, partition).await?;
                        work.reads_again(partition);
                        begun.insert(partition);
                    }
                    work.effect().begin(partition).await?;
                }
            }
            self.reading.entry(partition).or_insert(false);
        }
        Ok(())
    }

    /// Where a partition stands, now that its end was noted if it was seen.
    async fn standing<E: Effect>(
        &mut self,
        partition: i32,
        work: &Work<E>,
    ) -> Result<Standing, Missing> {
        if self.reading.get(&partition) == Some(&true) {
            work.effect().end(partition).await?;
        }
        let standing = work.effect().standing(partition).await?;
        if standing != Standing::Partly {
            self.reading.remove(&partition);
        }
        Ok(standing)
    }
}

fn assigned(consumer: &StreamConsumer<Member>) -> Vec<i32> {
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
) -> Result<(), Missing> {
    blocking(move || {
        // Where messages have expired, the log's beginning is the first offset there is.
        let mut beginning = TopicPartitionList::new();
        beginning.add_partition_offset(&topic, partition, Offset::Offset(0))?;
        // Else librdkafka would soon commit the higher offset that was stored before.
        consumer.store_offsets(&beginning)?;
        consumer.commit(&beginning, CommitMode::Sync)?;
        consumer.seek(&topic, partition, Offset::Beginning, PATIENCE)
    })
    .await
}

/// librdkafka answers these when its threads or the broker have.
async fn blocking<T: Send + 'static>(
    ask: impl FnOnce() -> KafkaResult<T> + Send + 'static,
) -> Result<T, Missing> {
    let asked = tokio::task::spawn_blocking(ask).await;
    let asked = asked.map_err(|error| Missing(error.to_string()))?;
    asked.map_err(|error| Missing(error.to_string()))
}
