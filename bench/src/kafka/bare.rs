//! The ceilings: what any program must at least do. Written as well as we know how.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;

use super::message::Message;

/// How long a broker that answers may take for everything.
const SOON: Duration = Duration::from_secs(120);

/// The pause while librdkafka's queue is full.
const QUEUE_FULL: Duration = Duration::from_millis(1);

/// Counts what the broker has not confirmed yet, and nothing more.
#[derive(Debug)]
struct Unconfirmed {
    open: AtomicUsize,
    none: Notify,
}

impl ClientContext for Unconfirmed {}

impl ProducerContext for Unconfirmed {
    type DeliveryOpaque = ();

    fn delivery(&self, delivery: &DeliveryResult<'_>, (): ()) {
        if delivery.is_ok() && self.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.none.notify_one();
        }
    }
}

/// Publishes messages that are ready in memory, headers included, with the promises that daegi
/// makes: idempotent and on all replicas. Says how long it took until all were confirmed.
pub(crate) async fn publish(
    brokers: &str,
    topic: &str,
    messages: &[Message],
) -> anyhow::Result<Duration> {
    let unconfirmed = Unconfirmed { open: AtomicUsize::new(messages.len()), none: Notify::new() };
    let producer: ThreadedProducer<Unconfirmed> = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("linger.ms", "5")
        .create_with_context(unconfirmed)?;
    let (topic, handing) = (topic.to_owned(), producer.clone());
    let ready: Vec<_> = messages.iter().map(|one| (one.clone(), one.owned_headers())).collect();
    let started = Instant::now();
    spawn_blocking(move || hand_over(&handing, &topic, ready)).await??;
    let context = producer.client().context();
    tokio::time::timeout(SOON, context.none.notified()).await.context("not confirmed")?;
    Ok(started.elapsed())
}

fn hand_over(
    producer: &ThreadedProducer<Unconfirmed>,
    topic: &str,
    messages: Vec<(Message, OwnedHeaders)>,
) -> anyhow::Result<()> {
    for (message, headers) in messages {
        let record = BaseRecord::to(topic).key(&message.key).payload(&message.body);
        let mut next = record.headers(headers);
        while let Err((error, again)) = producer.send(next) {
            if !matches!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)) {
                return Err(error.into());
            }
            std::thread::sleep(QUEUE_FULL);
            next = again;
        }
    }
    Ok(())
}

/// Reads so many messages as a member of a new group and only counts their bytes. Says how long
/// it took from the first to the last.
pub(crate) async fn read(
    brokers: &str,
    topic: &str,
    group: &str,
    count: usize,
) -> anyhow::Result<Duration> {
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", group)
        .set("auto.offset.reset", "earliest")
        .create()?;
    consumer.subscribe(&[topic])?;
    let mut bytes = consumer.recv().await?.payload_len();
    let started = Instant::now();
    for _ in 1..count {
        bytes += consumer.recv().await?.payload_len();
    }
    let took = started.elapsed();
    (bytes > 0).then_some(took).context("messages without bodies")
}
