//! How events leave the outbox.
//!
//! An event is removed only after the broker has confirmed it. A leader that dies in between
//! leaves it to the next one, which publishes it again with the same id. Partitions go side by
//! side; within one, events go in the order in which they happened.

mod outlet;

use std::time::Duration;

use daegi_store::{OutboxBatch, SharedStore};
use futures_util::future::join_all;
use metrics::counter;

use crate::meters;
use crate::trouble::Trouble;
pub use outlet::Outlet;

/// How many batches of a partition one step takes.
const BATCHES: u32 = 50;

/// The pause after a step that found nothing, and the first after one that failed.
const IDLE: Duration = Duration::from_millis(250);

/// The longest pause after steps that failed one after another.
const LONGEST: Duration = Duration::from_secs(4);

/// Empties the outbox while this replica leads.
#[derive(Debug, Clone)]
pub struct Relay {
    store: SharedStore,
    outlet: Outlet,
}

/// Why events are still in the outbox. The messages stay the same while the trouble does, so
/// that it is logged once.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The outbox cannot be read or cleared.
    #[error(transparent)]
    Store(#[from] daegi_store::Error),
    /// The broker did not confirm.
    #[error("kafka takes no events, the outbox keeps them")]
    Kafka(#[from] daegi_kafka::Error),
}

impl Relay {
    /// A relay from this store to that outlet.
    #[must_use]
    pub fn new(store: SharedStore, outlet: Outlet) -> Self {
        Self { store, outlet }
    }

    /// Steps for ever; whoever runs it ends it with the term.
    pub(crate) async fn run(&self) {
        let mut trouble = Trouble::new("relay");
        let mut pause = IDLE;
        loop {
            match self.step().await {
                Ok(events) => {
                    trouble.over();
                    pause = IDLE;
                    if events > 0 {
                        // The memory store never waits, so this loop must let others run.
                        tokio::task::yield_now().await;
                        continue;
                    }
                }
                Err(error) => {
                    trouble.met(&error);
                    pause = (pause * 2).min(LONGEST);
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Takes the oldest events of every partition out and says how many there were.
    ///
    /// # Errors
    /// If the store or the broker is away. Other partitions are done all the same, and events
    /// whose removal failed are met again.
    pub async fn step(&self) -> Result<usize, RelayError> {
        let partitions = (0..self.store.partitions()).map(|partition| self.partition(partition));
        join_all(partitions).await.into_iter().sum()
    }

    async fn partition(&self, partition: u16) -> Result<usize, RelayError> {
        let batches = self.store.outbox_read(partition, BATCHES).await?;
        if batches.is_empty() {
            return Ok(0);
        }
        self.hand_over(&batches).await?;
        let events = batches.iter().map(|batch| batch.events.len()).sum();
        let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
        self.store.outbox_ack(partition, &ids).await?;
        Ok(events)
    }

    async fn hand_over(&self, batches: &[OutboxBatch]) -> Result<(), RelayError> {
        let handed_over = self.outlet.take(batches).await;
        if let Err(error) = &handed_over {
            counter!(meters::RELAY_FAILED).increment(1);
            tracing::debug!(%error, "not published");
        }
        Ok(handed_over?)
    }
}
