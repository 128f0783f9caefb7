//! The publisher.
//!
//! Order is worth more than speed here: an order service that sees number 8 before number 7 has
//! been lied to. librdkafka keeps the order of one partition as long as nothing is given up in
//! the middle, so single messages never expire (`message.timeout.ms=0`). Instead a whole call
//! has a deadline, and a producer that missed it is thrown away with everything it still holds.
//! Every producer thus delivers a prefix of what it was given, in order.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::future_producer::DeliveryFuture;
use rdkafka::producer::{FutureProducer, FutureRecord};

use crate::client::{self, Quiet};
use crate::{Error, Record, Result};

/// How long the broker has to confirm a call, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause before a full queue is tried again.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(2);

type Producer = FutureProducer<Quiet>;

/// Publishes records. Calls may run at the same time; each keeps its own order.
pub struct Publisher {
    config: ClientConfig,
    patience: Duration,
    current: Mutex<Current>,
}

/// The producer in use, and how many there were before it.
#[derive(Clone)]
struct Current {
    generation: u64,
    producer: Producer,
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Publisher {
    /// A publisher to these brokers. They need not be there yet.
    ///
    /// # Errors
    /// If librdkafka refuses the addresses.
    pub fn new(brokers: &str) -> Result<Self> {
        let mut config = client::config(brokers);
        config
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("linger.ms", "3")
            .set("compression.type", "none")
            // See the head of this file: the call has a deadline, a message has none.
            .set("message.timeout.ms", "0");
        let producer = config.create_with_context(Quiet)?;
        let current = Mutex::new(Current { generation: 0, producer });
        Ok(Self { config, patience: PATIENCE, current })
    }

    /// Waits this long for confirmations.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Hands all records over at once and waits until all are confirmed.
    ///
    /// # Errors
    /// If one of them is not confirmed. Some may have arrived; publishing all again, in the same
    /// order, loses nothing and repeats some.
    pub async fn publish(&self, records: &[Record]) -> Result<()> {
        let current = self.current().clone();
        let confirmed = tokio::time::timeout(self.patience, deliver(&current.producer, records));
        let outcome = confirmed.await.unwrap_or(Err(Error::Unconfirmed(self.patience)));
        if outcome.is_err() {
            self.give_up(current).await;
        }
        outcome
    }

    /// Replaces a producer that failed, once, however many calls saw it fail.
    async fn give_up(&self, failed: Current) {
        if let Ok(producer) = self.config.create_with_context(Quiet) {
            let mut current = self.current();
            if current.generation == failed.generation {
                *current = Current { generation: failed.generation + 1, producer };
            }
        }
        // Dropping a producer waits for its thread, up to half a second.
        let dropped = tokio::task::spawn_blocking(move || drop(failed));
        let _ = dropped.await;
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn deliver(producer: &Producer, records: &[Record]) -> Result<()> {
    let mut confirmations = Vec::with_capacity(records.len());
    for record in records {
        confirmations.push(enqueue(producer, record).await?);
    }
    for confirmation in confirmations {
        let confirmed = confirmation.await.map_err(|_| Error::GivenUp)?;
        confirmed.map_err(|(error, _)| error)?;
    }
    Ok(())
}

async fn enqueue(producer: &Producer, record: &Record) -> Result<DeliveryFuture> {
    loop {
        match producer.send_result(message(record)) {
            Ok(confirmation) => return Ok(confirmation),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => {
                tokio::time::sleep(QUEUE_FULL_PAUSE).await;
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
}

fn message(record: &Record) -> FutureRecord<'_, Vec<u8>, Vec<u8>> {
    let mut message = FutureRecord::to(&record.topic).headers(record.headers.clone());
    message.key = record.key.as_ref();
    message.payload = record.body.as_ref();
    message
}
