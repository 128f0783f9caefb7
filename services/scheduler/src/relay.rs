//! The relay: publishes the events of the outbox while this replica leads.
//!
//! An event is removed only after the broker has confirmed it. If the leader dies in between, the next
//! one publishes the event again with the same id. Partitions are published concurrently and never wait
//! for each other; within one, events keep their order.

mod controls;
mod partition;
mod recent_events;
mod sink;
mod spans;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::metrics::counter;
use daegi_domain::Topic;
use daegi_runtime::Tracer;
use daegi_runtime::outage::{Backoff, PartitionOutageLog};
use daegi_store::SharedStore;
use futures_util::future::join_all;
use tokio::task::JoinSet;

use crate::metrics;
use partition::PartitionRelay;
pub use recent_events::RecentEvents;
pub use sink::{
    DiscardSink, EventSink, KafkaSink, SharedSink, SinkSession, from_config, outbox_sequence,
};

/// Delay before an empty partition is read again.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Backoff of a partition that fails.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(4);

/// Publishes the outbox to a sink.
#[derive(Debug, Clone)]
pub struct Relay {
    store: SharedStore,
    sink: SharedSink,
    recent: Arc<RecentEvents>,
    tracer: Tracer,
}

/// Why events are still in the outbox. The messages of one outage do not change, so that it is logged
/// once.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The outbox cannot be read or cleared.
    #[error(transparent)]
    Store(#[from] daegi_store::Error),
    /// The broker did not confirm.
    #[error("kafka publish failed, events stay in the outbox")]
    Kafka(#[from] daegi_kafka::Error),
}

impl Relay {
    /// A relay from this store to this sink.
    #[must_use]
    pub fn new(store: SharedStore, sink: SharedSink) -> Self {
        // Registers the counters at the start, so that an alert can distinguish 0 from absent.
        counter!(metrics::RELAY_FAILED).increment(0);
        for topic in Topic::OUTBOUND {
            counter!(metrics::RELAY_DROPPED, "type" => topic.event_type()).increment(0);
        }
        Self { store, sink, recent: Arc::default(), tracer: Tracer::default() }
    }

    /// Adds a span for each published event of a traced ticket.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Tracer) -> Self {
        self.tracer = tracer;
        self
    }

    /// Returns the events that this relay sent last, confirmed or not.
    #[must_use]
    pub fn recent(&self) -> Arc<RecentEvents> {
        Arc::clone(&self.recent)
    }

    /// Publishes all partitions. Never returns; the caller drops the future when the term ends.
    pub async fn run(&self) {
        let outage = Arc::new(Mutex::new(PartitionOutageLog::new("relay")));
        // One task per partition, so that a full outbox does not delay the leader's ticks. The set
        // aborts its tasks when it is dropped with this future.
        let mut partitions = JoinSet::new();
        partitions.spawn(self.clone().run_controls());
        for partition in 0..self.store.partitions() {
            partitions.spawn(self.clone().run_partition(partition, outage.clone()));
        }
        // None of the tasks returns. A panic of one is resumed here and ends the process, because a
        // leader must not lead while no task publishes one of the partitions.
        while let Some(ended) = partitions.join_next().await {
            if let Err(error) = ended {
                std::panic::resume_unwind(error.into_panic());
            }
        }
    }

    async fn run_partition(self, partition: u16, outage: Arc<Mutex<PartitionOutageLog>>) {
        let outage = || outage.lock().unwrap_or_else(PoisonError::into_inner);
        let mut backoff = Backoff::new(FIRST_BACKOFF, MAX_BACKOFF);
        loop {
            let delay = match self.publish_partition(partition).await {
                Ok(events) => {
                    outage().recovered(partition);
                    backoff.reset();
                    if events > 0 {
                        // The memory store never waits, so this loop must yield to other tasks.
                        tokio::task::yield_now().await;
                        continue;
                    }
                    POLL_INTERVAL
                }
                Err(error) => {
                    outage().failed(partition, &error);
                    backoff.next_delay()
                }
            };
            tokio::time::sleep(delay).await;
        }
    }

    /// Publishes what every partition holds, once. Returns how many events left the outbox.
    ///
    /// # Errors
    /// If the store or the broker is unavailable. Other partitions are published all the same, and events
    /// whose removal failed are published again.
    pub async fn publish_all(&self) -> Result<usize, RelayError> {
        let partitions = 0..self.store.partitions();
        let published = partitions.map(|partition| self.publish_partition(partition));
        join_all(published).await.into_iter().sum()
    }

    /// Runs one session of a partition, from its oldest event on.
    async fn publish_partition(&self, partition: u16) -> Result<usize, RelayError> {
        let session = self.sink.session();
        let sink = (&*self.sink, &*session);
        let relay = PartitionRelay::new(&*self.store, sink, &self.recent, &self.tracer, partition);
        let published = relay.run().await;
        if let Err(RelayError::Kafka(error)) = &published {
            counter!(metrics::RELAY_FAILED).increment(1);
            tracing::debug!(%error, partition, "kafka publish failed");
            session.abort().await;
        }
        published
    }
}
