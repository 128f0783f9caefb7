//! How events leave the outbox.
//!
//! An event is removed only after the broker has confirmed it. A leader that dies in between
//! leaves it to the next one, which publishes it again with the same id. Partitions go side by
//! side and never wait for each other; within one, events go in the order in which they happened.

mod drain;
mod outlet;
mod recent;
mod spans;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use daegi_domain::Topic;
use daegi_runtime::Traces;
use daegi_store::SharedStore;
use futures_util::future::join_all;
use metrics::counter;
use tokio::task::JoinSet;

use crate::meters;
use crate::trouble::Troubles;
use drain::Drain;
pub use outlet::{Ear, Outlet, sequence};
pub use recent::Recent;

/// The pause after a partition was found empty, and the first after one that failed.
const IDLE: Duration = Duration::from_millis(250);

/// The longest pause of a partition that failed again and again.
const LONGEST: Duration = Duration::from_secs(4);

/// Empties the outbox while this replica leads.
#[derive(Debug, Clone)]
pub struct Relay {
    store: SharedStore,
    outlet: Outlet,
    recent: Arc<Recent>,
    traces: Traces,
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
        // From the start, so that an alert can tell none from nobody knows.
        counter!(meters::RELAY_FAILED).increment(0);
        for topic in [Topic::TokenActivated, Topic::TokenClosed] {
            counter!(meters::RELAY_DROPPED, "type" => topic.event_type()).increment(0);
        }
        Self { store, outlet, recent: Arc::default(), traces: Traces::default() }
    }

    /// The same, and events are spans of their tickets' traces.
    #[must_use]
    pub fn traced(mut self, traces: Traces) -> Self {
        self.traces = traces;
        self
    }

    /// What it published lately.
    #[must_use]
    pub fn recent(&self) -> Arc<Recent> {
        Arc::clone(&self.recent)
    }

    /// Keeps all partitions empty, for ever; whoever runs it ends it with the term.
    pub async fn run(&self) {
        let troubles = Arc::new(Mutex::new(Troubles::new("relay")));
        // Tasks of their own, so that a full outbox does not keep the leader from its ticks. They
        // end with this future: the set aborts what is in it when it is dropped.
        let mut partitions = JoinSet::new();
        for partition in 0..self.store.partitions() {
            partitions.spawn(self.clone().keep_empty(partition, troubles.clone()));
        }
        // None of them ends by itself. One that panics takes the leader along, as it did the
        // relay: whoever restarts processes can do better than a leader without one partition.
        while let Some(ended) = partitions.join_next().await {
            if let Err(error) = ended {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }

    async fn keep_empty(self, partition: u16, troubles: Arc<Mutex<Troubles>>) {
        let troubles = || troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pause = IDLE;
        loop {
            match self.drain(partition).await {
                Ok(events) => {
                    troubles().over(partition);
                    pause = IDLE;
                    if events > 0 {
                        // The memory store never waits, so this loop must let others run.
                        tokio::task::yield_now().await;
                        continue;
                    }
                }
                Err(error) => {
                    troubles().met(partition, &error);
                    pause = (pause * 2).min(LONGEST);
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Takes what every partition holds out and says how many events it were.
    ///
    /// # Errors
    /// If the store or the broker is away. Other partitions are done all the same, and events
    /// whose removal failed are met again.
    pub async fn step(&self) -> Result<usize, RelayError> {
        let partitions = (0..self.store.partitions()).map(|partition| self.drain(partition));
        join_all(partitions).await.into_iter().sum()
    }

    /// One stretch of a partition: from its oldest event on, as far as it goes.
    async fn drain(&self, partition: u16) -> Result<usize, RelayError> {
        let passage = self.outlet.open();
        let drain = Drain::new(&*self.store, &passage, &self.recent, &self.traces, partition);
        let drained = drain.run().await;
        if let Err(RelayError::Kafka(error)) = &drained {
            counter!(meters::RELAY_FAILED).increment(1);
            tracing::debug!(%error, "not published");
            passage.give_up().await;
        }
        drained
    }
}
