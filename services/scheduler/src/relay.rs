//! How events leave the outbox.
//!
//! Kafka off is a mode of its own, not a placeholder: a waiting room without an order service
//! that listens. Events are counted and dropped then, because an outbox nobody reads would fill
//! up and stop admission.

use std::time::Duration;

use daegi_domain::LineEvent;
use daegi_runtime::KafkaConfig;
use daegi_store::{OutboxBatch, Result, SharedStore};
use metrics::counter;

use crate::meters;
use crate::trouble::Trouble;

/// How many batches of a partition one step takes.
const BATCHES: u32 = 100;

/// The pause after a step that found nothing, or failed.
const IDLE: Duration = Duration::from_millis(250);

/// Empties the outbox while this replica leads.
#[derive(Debug, Clone)]
pub struct Relay {
    store: SharedStore,
    kafka: KafkaConfig,
}

impl Relay {
    /// A relay from this store to where the configuration says.
    #[must_use]
    pub fn new(store: SharedStore, kafka: KafkaConfig) -> Self {
        Self { store, kafka }
    }

    /// Steps for ever; whoever runs it ends it with the term.
    pub(crate) async fn run(&self) {
        let mut trouble = Trouble::new("relay");
        loop {
            match self.step().await {
                Ok(0) => trouble.over(),
                // The memory store never waits, so this loop must let others run.
                Ok(_) => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Err(error) => _ = trouble.met(&error),
            }
            tokio::time::sleep(IDLE).await;
        }
    }

    /// Takes the oldest events of every partition out and says how many there were.
    ///
    /// # Errors
    /// If the store is away. Events whose removal failed are met again.
    pub async fn step(&self) -> Result<usize> {
        let mut events = 0;
        for partition in 0..self.store.partitions() {
            let batches = self.store.outbox_read(partition, BATCHES).await?;
            if batches.is_empty() {
                continue;
            }
            match self.kafka {
                KafkaConfig::Off => drop_all(&batches),
            }
            events += batches.iter().map(|batch| batch.events.len()).sum::<usize>();
            let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
            self.store.outbox_ack(partition, &ids).await?;
        }
        Ok(events)
    }
}

fn drop_all(batches: &[OutboxBatch]) {
    for event in batches.iter().flat_map(|batch| &batch.events) {
        let kind = match event {
            LineEvent::Activated { .. } => "token.activated",
            LineEvent::Closed { .. } => "token.closed",
        };
        counter!(meters::RELAY_DROPPED, "type" => kind).increment(1);
    }
}
