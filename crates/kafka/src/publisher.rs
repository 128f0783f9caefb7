//! Publishes records in order.
//!
//! A consumer must not read number 8 before number 7, so order has precedence over throughput. Two
//! rules give both:
//!
//! - **A producer delivers a prefix of what it was given, in order.** librdkafka keeps the order
//!   of a partition as long as no message in the middle is dropped. So single messages never expire
//!   (`message.timeout.ms=0`), a batch that the broker rejects for good stops the producer
//!   (`enable.gapless.guarantee`), and a producer with a rejected record accepts no more.
//! - **A [`PublishSession`] stays with one producer.** Sends of a session follow each other without
//!   waiting for confirmations. When one of them fails the session ends: its producer is
//!   discarded with all records it still holds, and the caller starts a new session with the oldest
//!   record that was not confirmed.
//!
//! Every producer thus delivers a gapless run that starts where confirmed records end, and the
//! first delivery of each record is in order, even if records are repeated.

mod delivery;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};

use crate::{Brokers, Error, Record, Result};
use delivery::{DeliveryContext, DeliveryTracker};

/// Default time that the broker has to confirm the records of one send.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Delay before a full queue is tried again.
const QUEUE_FULL_BACKOFF: Duration = Duration::from_millis(2);

type Producer = ThreadedProducer<DeliveryContext>;
type Message<'a> = BaseRecord<'a, Vec<u8>, Vec<u8>, Arc<DeliveryTracker>>;

/// Publishes records. Sessions may run concurrently; each keeps its own order.
pub struct Publisher {
    brokers: Brokers,
    delivery_timeout: Duration,
    current: Mutex<ProducerGeneration>,
}

/// The producer in use, and how many were discarded before it.
#[derive(Clone)]
struct ProducerGeneration {
    generation: u64,
    producer: Producer,
}

/// A run of sends through one producer. See the module documentation.
#[must_use = "a failed session must be aborted"]
pub struct PublishSession<'a> {
    publisher: &'a Publisher,
    current: ProducerGeneration,
}

/// Records that were sent and are not confirmed yet.
#[derive(Debug, Default)]
#[must_use = "only confirmed records are published"]
pub struct PendingDelivery {
    tracker: Arc<DeliveryTracker>,
    delivery_timeout: Duration,
}

impl Publisher {
    /// Creates a publisher. The brokers need not be reachable yet.
    ///
    /// # Errors
    /// If librdkafka rejects the addresses, or the properties cannot be used.
    pub fn new(brokers: impl Into<Brokers>) -> Result<Self> {
        let brokers = brokers.into();
        let current =
            Mutex::new(ProducerGeneration { generation: 0, producer: producer(&brokers)? });
        Ok(Self { brokers, delivery_timeout: DELIVERY_TIMEOUT, current })
    }

    /// Creates another publisher with the same configuration. Records that the broker rejects stop only the
    /// publisher that sent them.
    ///
    /// # Errors
    /// If librdkafka rejects the configuration.
    pub fn separate(&self) -> Result<Self> {
        Ok(Self::new(&self.brokers)?.with_delivery_timeout(self.delivery_timeout))
    }

    /// Sets how long the broker has to confirm the records of one send.
    #[must_use]
    pub fn with_delivery_timeout(mut self, delivery_timeout: Duration) -> Self {
        self.delivery_timeout = delivery_timeout;
        self
    }

    /// Sends all records and waits until all are confirmed.
    ///
    /// # Errors
    /// If one of them is not confirmed. Some may have arrived; publishing all again in the same
    /// order loses nothing and repeats some.
    pub async fn publish(&self, records: &[Record]) -> Result<()> {
        let session = self.session();
        let confirmed = async {
            let pending = session.send(records.iter().cloned().map(Ok)).await?;
            pending.wait().await
        };
        let outcome = confirmed.await;
        if outcome.is_err() {
            session.abort().await;
        }
        outcome
    }

    /// Starts a session. The caller begins with the oldest record that is not confirmed.
    pub fn session(&self) -> PublishSession<'_> {
        PublishSession { publisher: self, current: self.current().clone() }
    }

    fn current(&self) -> MutexGuard<'_, ProducerGeneration> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn producer(brokers: &Brokers) -> Result<Producer> {
    let defaults = [("linger.ms", "5"), ("compression.type", "none")];
    let mut config = brokers.client_config(&defaults)?;
    config
        .set("enable.idempotence", "true")
        .set("acks", "all")
        // See the module documentation: a send has a timeout, a message has none.
        .set("message.timeout.ms", "0")
        .set("enable.gapless.guarantee", "true");
    Ok(config.create_with_context(DeliveryContext::default())?)
}

impl PublishSession<'_> {
    /// Sends records after those of earlier calls. Records are taken from the iterator one by one,
    /// so that they need not all be in memory. Waits only while librdkafka's queue is full.
    ///
    /// # Errors
    /// If librdkafka does not accept them. The session has ended then.
    pub async fn send<R>(&self, records: R) -> Result<PendingDelivery>
    where
        R: IntoIterator<Item = Result<Record>, IntoIter: Send>,
    {
        let (delivery_timeout, tracker) =
            (self.publisher.delivery_timeout, Arc::<DeliveryTracker>::default());
        let sending = async {
            for record in records {
                self.enqueue(record?, tracker.expect_one()).await?;
            }
            Ok(())
        };
        let sent = tokio::time::timeout(delivery_timeout, sending).await;
        sent.unwrap_or(Err(Error::Unconfirmed(delivery_timeout)))?;
        Ok(PendingDelivery { tracker, delivery_timeout })
    }

    async fn enqueue(&self, record: Record, tracker: Arc<DeliveryTracker>) -> Result<()> {
        let producer = &self.current.producer;
        let Record { topic, key, body, headers } = record;
        let mut message: Message<'_> = BaseRecord::with_opaque_to(&topic, tracker).headers(headers);
        (message.key, message.payload) = (key.as_ref(), body.as_ref());
        loop {
            if producer.client().context().has_rejected() {
                return Err(Error::Aborted);
            }
            match producer.send(message) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                    message = again;
                    tokio::time::sleep(QUEUE_FULL_BACKOFF).await;
                }
                Err((error, _)) => return Err(error.into()),
            }
        }
    }

    /// Replaces the failed producer, once, even if several of its sessions abort. Its records are
    /// dropped when the last of these sessions has aborted; until then it can only repeat records.
    pub async fn abort(self) {
        let Self { publisher, current: failed } = self;
        // Reads the properties again, so that a corrected password or certificate is used.
        if let Ok(producer) = producer(&publisher.brokers) {
            let mut current = publisher.current();
            if current.generation == failed.generation {
                *current = ProducerGeneration { generation: failed.generation + 1, producer };
            }
        }
        // Dropping a producer waits for its thread, up to 500 ms.
        let dropped = tokio::task::spawn_blocking(move || drop(failed));
        let _ = dropped.await;
    }
}

impl PendingDelivery {
    /// Waits until all are confirmed. The timeout applies to each send, so that a slow broker that
    /// still confirms is not treated as failed.
    ///
    /// # Errors
    /// If one of them is rejected or not confirmed in time. The session has ended then.
    pub async fn wait(self) -> Result<()> {
        match tokio::time::timeout(self.delivery_timeout, self.tracker.wait()).await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(Error::Unconfirmed(self.delivery_timeout)),
        }
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher")
            .field("delivery_timeout", &self.delivery_timeout)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for PublishSession<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let generation = self.current.generation;
        f.debug_struct("PublishSession").field("generation", &generation).finish_non_exhaustive()
    }
}
