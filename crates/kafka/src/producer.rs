//! The publisher.
//!
//! Order is worth more than speed here: an order service that sees number 8 before number 7 has
//! been lied to. Two rules give both:
//!
//! - **A producer delivers a prefix of what it was given, in order.** librdkafka keeps the order
//!   of a partition as long as nothing is given up in the middle. So single messages never expire
//!   (`message.timeout.ms=0`), a batch that the broker refuses for good stops the producer
//!   (`enable.gapless.guarantee`), and a producer that had to refuse anything takes nothing more.
//! - **A [`Stretch`] stays with one producer.** Calls of a stretch follow each other without
//!   waiting for confirmations. When one of them fails the stretch is over: its producer is
//!   thrown away with all it still holds, and whoever goes on begins a new stretch with the oldest
//!   record that was not confirmed.
//!
//! Every producer thus delivers a gapless run that begins where confirmed records end, and the
//! first delivery of each record is in order, whoever repeats what.

mod answers;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer as _, ThreadedProducer};

use crate::{Error, Record, Result, client};
use answers::{Answers, Call};

/// How long the broker has to confirm a call, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause before a full queue is tried again.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(2);

type Producer = ThreadedProducer<Answers>;
type Message<'a> = BaseRecord<'a, Vec<u8>, Vec<u8>, Arc<Call>>;

/// Publishes records. Calls and stretches may run at the same time; each keeps its own order.
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

/// A run of calls through one producer. See the head of this module.
#[must_use = "a stretch that failed has to be given up"]
pub struct Stretch<'a> {
    publisher: &'a Publisher,
    current: Current,
}

/// Records that are on their way. Nothing is known of them until they are confirmed.
#[derive(Debug, Default)]
#[must_use = "only confirmed records are published"]
pub struct Handed {
    call: Arc<Call>,
    patience: Duration,
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
            .set("linger.ms", "5")
            .set("compression.type", "none")
            // See the head of this file: the call has a deadline, a message has none.
            .set("message.timeout.ms", "0")
            .set("enable.gapless.guarantee", "true");
        let producer = config.create_with_context(Answers::default())?;
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
        let stretch = self.begin();
        let confirmed = async {
            let handed = stretch.hand_over(records.iter().cloned().map(Ok)).await?;
            handed.confirmed().await
        };
        let outcome = confirmed.await;
        if outcome.is_err() {
            stretch.give_up().await;
        }
        outcome
    }

    /// Begins a stretch, with the oldest record that is not confirmed.
    pub fn begin(&self) -> Stretch<'_> {
        Stretch { publisher: self, current: self.current().clone() }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stretch<'_> {
    /// Hands records over, behind those of earlier calls. Each is taken when it is its turn, so
    /// that an iterator which writes them needs no memory for all. Waits only while librdkafka's
    /// queue is full.
    ///
    /// # Errors
    /// If they are not taken. The stretch is over then.
    pub async fn hand_over<R>(&self, records: R) -> Result<Handed>
    where
        R: IntoIterator<Item = Result<Record>, IntoIter: Send>,
    {
        let (patience, call) = (self.publisher.patience, Arc::<Call>::default());
        let handing = async {
            for record in records {
                self.enqueue(record?, call.one_more()).await?;
            }
            Ok(())
        };
        let handed = tokio::time::timeout(patience, handing).await;
        handed.unwrap_or(Err(Error::Unconfirmed(patience)))?;
        Ok(Handed { call, patience })
    }

    async fn enqueue(&self, record: Record, call: Arc<Call>) -> Result<()> {
        let producer = &self.current.producer;
        let Record { topic, key, body, headers } = record;
        let mut message: Message<'_> = BaseRecord::with_opaque_to(&topic, call).headers(headers);
        (message.key, message.payload) = (key.as_ref(), body.as_ref());
        loop {
            if producer.client().context().has_refused() {
                return Err(Error::GivenUp);
            }
            match producer.send(message) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                    message = again;
                    tokio::time::sleep(QUEUE_FULL_PAUSE).await;
                }
                Err((error, _)) => return Err(error.into()),
            }
        }
    }

    /// Throws the producer away, once, however many stretches saw it fail. What it holds is gone
    /// when the last of them has noticed; until then it can only repeat.
    pub async fn give_up(self) {
        let Self { publisher, current: failed } = self;
        if let Ok(producer) = publisher.config.create_with_context(Answers::default()) {
            let mut current = publisher.current();
            if current.generation == failed.generation {
                *current = Current { generation: failed.generation + 1, producer };
            }
        }
        // Dropping a producer waits for its thread, up to half a second.
        let dropped = tokio::task::spawn_blocking(move || drop(failed));
        let _ = dropped.await;
    }
}

impl Handed {
    /// Waits until all are confirmed. Whoever waits for several in turn is patient with each of
    /// them: a broker that is slow but answers is not given up.
    ///
    /// # Errors
    /// If one of them is refused, or not confirmed in time. The stretch is over then.
    pub async fn confirmed(self) -> Result<()> {
        match tokio::time::timeout(self.patience, self.call.over()).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Error::Unconfirmed(self.patience)),
        }
    }
}

impl std::fmt::Debug for Publisher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Publisher").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Stretch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let generation = self.current.generation;
        f.debug_struct("Stretch").field("generation", &generation).finish_non_exhaustive()
    }
}
