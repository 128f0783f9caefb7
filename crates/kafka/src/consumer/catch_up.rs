//! Reading a partition again from its beginning.
//!
//! Offsets live in Kafka, what messages did lives elsewhere and may get lost there. So whoever
//! keeps it also keeps a note that a partition was read to its end: no note, and it is read again.
//! The note is written before the reading begins and confirmed at its end, so that neither a
//! replica that dies nor a loss in the middle makes a half-read partition look complete.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::Offset;
use rdkafka::consumer::{Consumer as _, StreamConsumer};

use super::partition::Work;
use super::{Effect, Failure, Member};

/// How long librdkafka may take to go back.
const SEEK: Duration = Duration::from_secs(5);

/// The partitions this replica reads again.
#[derive(Debug, Default)]
pub(super) struct CatchUp {
    /// All of this belongs to one assignment; the next one begins anew.
    era: u64,
    /// Those that were begun, and whether their end was seen.
    reading: BTreeMap<i32, bool>,
}

impl CatchUp {
    /// Begins to read again what must be, and confirms what is complete.
    pub(super) async fn look<E: Effect>(
        &mut self,
        consumer: &Arc<StreamConsumer<Member>>,
        work: &Work<E>,
    ) {
        let era = consumer.context().era();
        if era != self.era {
            *self = Self { era, reading: BTreeMap::new() };
        }
        let mut begun = Vec::new();
        for partition in assigned(consumer) {
            match self.partition(partition, consumer, work).await {
                Ok(false) => {}
                Ok(true) => begun.push(partition),
                Err(failure) => {
                    // Whoever was asked is away; the other partitions would only wait for it, too.
                    tracing::debug!(partition, ?failure, "not known whether to read it again");
                    break;
                }
            }
        }
        if !begun.is_empty() {
            tracing::info!(topic = %E::TOPIC, partitions = ?begun, "reading from the beginning");
        }
    }

    /// The ends of these partitions were seen, after all their messages had their effect.
    pub(super) async fn ends<E: Effect>(
        &mut self,
        partitions: &[i32],
        consumer: &Arc<StreamConsumer<Member>>,
        work: &Work<E>,
    ) {
        // Of another assignment, which may have begun anywhere.
        let known = consumer.context().era() == self.era;
        let mut news = !known;
        for partition in partitions.iter().filter(|_| known) {
            if let Some(end_seen) = self.reading.get_mut(partition) {
                (*end_seen, news) = (true, true);
            }
        }
        if news {
            self.look(consumer, work).await;
        }
    }

    /// Whether it is read again from now on.
    async fn partition<E: Effect>(
        &mut self,
        partition: i32,
        consumer: &Arc<StreamConsumer<Member>>,
        work: &Work<E>,
    ) -> Result<bool, Failure> {
        if self.reading.get(&partition) == Some(&true) {
            work.effect().read_to_end(partition).await?;
            self.reading.remove(&partition);
        }
        let reading = self.reading.contains_key(&partition);
        if !work.effect().read_again(partition, reading).await? {
            return Ok(false);
        }
        self.reading.remove(&partition);
        let topic = work.topics().name(E::TOPIC).to_owned();
        go_back(consumer.clone(), topic, partition).await?;
        self.reading.insert(partition, false);
        Ok(true)
    }
}

fn assigned(consumer: &StreamConsumer<Member>) -> Vec<i32> {
    let partitions = consumer.assignment();
    let partitions = partitions.iter().flat_map(|list| list.elements());
    partitions.map(|element| element.partition()).collect()
}

/// Waits for the answer: a partition that could not go back yet is tried again by the next look.
async fn go_back(
    consumer: Arc<StreamConsumer<Member>>,
    topic: String,
    partition: i32,
) -> Result<(), Failure> {
    let seek = move || consumer.seek(&topic, partition, Offset::Beginning, SEEK);
    let sought = tokio::task::spawn_blocking(seek).await;
    let sought = sought.map_err(|error| Failure::Transient(error.to_string()))?;
    sought.map_err(|error| Failure::Transient(error.to_string()))
}
