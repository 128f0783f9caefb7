//! Where the relay publishes events.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use daegi_domain::{
    ControlChanged, ItemControl, ItemId, LineClosed, LineEvent, LineOpened, Ticket, TicketEvent,
    TicketKeys, TokenActivated, TokenClosed, Topics,
};
use daegi_kafka::record::{EPOCH, SEQUENCE, TRACEPARENT};
use daegi_kafka::{Brokers, PendingDelivery, PublishSession, Publisher, Record, Result};
use daegi_runtime::{Config, Tracer};
use daegi_store::OutboxBatch;

use super::spans::context;
use crate::metrics;

/// Where events go.
#[async_trait]
pub trait EventSink: fmt::Debug + Send + Sync {
    /// Starts a session. The caller begins with the oldest event of a partition.
    fn session(&self) -> Box<dyn SinkSession + '_>;

    /// Whether [`EventSink::publish_controls`] publishes anything.
    fn takes_controls(&self) -> bool {
        false
    }

    /// Publishes the settings of items and waits until all are confirmed.
    ///
    /// # Errors
    /// If one of them is not confirmed.
    async fn publish_controls(&self, _: &[ItemControl]) -> Result<()> {
        Ok(())
    }

    /// The counter of events that left the outbox through this sink.
    fn counter(&self) -> &'static str {
        metrics::RELAY_PUBLISHED
    }
}

/// Sends the events of one partition to a sink, in order.
#[async_trait]
pub trait SinkSession: Send + Sync {
    /// Sends events after those of earlier calls.
    ///
    /// # Errors
    /// If the sink does not accept them. The session has ended then.
    async fn send(&self, batches: &[OutboxBatch], tracer: &Tracer) -> Result<PendingDelivery>;

    /// Drops what was sent and not delivered, after a failure.
    async fn abort(self: Box<Self>) {}
}

/// A sink that is shared by all partitions.
pub type SharedSink = Arc<dyn EventSink>;

/// Counts events and drops them, in a deployment without Kafka. Otherwise the outbox would fill up and
/// admission would stop.
#[derive(Debug, Clone, Copy)]
pub struct DiscardSink;

/// Publishes events to Kafka.
pub struct KafkaSink {
    publisher: Publisher,
    /// A missing topic of settings must not stop other events.
    controls: Publisher,
    topics: Topics,
    ticket_keys: TicketKeys,
}

struct KafkaSession<'a> {
    sink: &'a KafkaSink,
    session: PublishSession<'a>,
}

/// Returns the sink of a configuration.
///
/// # Errors
/// If librdkafka rejects the broker addresses or properties.
pub fn from_config(config: &Config) -> Result<SharedSink> {
    let Some(brokers) = config.kafka.brokers() else { return Ok(Arc::new(DiscardSink)) };
    let brokers = Brokers::from(brokers).with_properties(config.kafka_properties.as_deref());
    let publisher = Publisher::new(brokers)?;
    KafkaSink::shared(publisher, config.topics.clone(), config.secrets.ticket_keys.clone())
}

#[async_trait]
impl EventSink for DiscardSink {
    fn session(&self) -> Box<dyn SinkSession + '_> {
        Box::new(*self)
    }

    fn counter(&self) -> &'static str {
        metrics::RELAY_DROPPED
    }
}

#[async_trait]
impl SinkSession for DiscardSink {
    async fn send(&self, _: &[OutboxBatch], _: &Tracer) -> Result<PendingDelivery> {
        Ok(PendingDelivery::default())
    }
}

impl KafkaSink {
    /// A sink that publishes through this publisher, and settings through another one like it. Events carry
    /// tokens, which the keys sign.
    ///
    /// # Errors
    /// If librdkafka rejects the configuration.
    pub fn shared(
        publisher: Publisher,
        topics: Topics,
        ticket_keys: TicketKeys,
    ) -> Result<SharedSink> {
        let controls = publisher.separate()?;
        Ok(Arc::new(Self { publisher, controls, topics, ticket_keys }))
    }

    fn records(
        &self,
        batches: &[OutboxBatch],
        tracer: &Tracer,
    ) -> impl Iterator<Item = Result<Record>> {
        let tickets = public_events(batches).map(|(batch, index, event)| {
            let record = with_origin(self.record(batch, event)?, batch, index);
            Ok(match context(tracer, batch, event) {
                Some(context) => record.with(TRACEPARENT, &context.to_string()),
                None => record,
            })
        });
        let lines = batches.iter().filter_map(|batch| Some((batch, batch.line.as_ref()?)));
        let lines = lines
            .map(|(batch, event)| Ok(with_origin(self.line_record(&batch.item, event)?, batch, 0)));
        // Events of a line and of its tickets are in different topics, which have no common order.
        tickets.chain(lines)
    }

    fn line_record(&self, item: &ItemId, event: &LineEvent) -> Result<Record> {
        let (id, item) = (event.id(item), item.clone());
        match event {
            LineEvent::Opened { at, draw } => {
                let body = LineOpened::new(item, id, *at, draw.as_ref());
                Record::from_event(&body, &self.topics)
            }
            LineEvent::Closed { at } => {
                Record::from_event(&LineClosed::new(item, id, *at), &self.topics)
            }
        }
    }

    fn record(&self, batch: &OutboxBatch, event: &TicketEvent) -> Result<Record> {
        let (item, lane) = (&batch.item, batch.lane);
        let ticket =
            Ticket { lane, ..Ticket::new(item.clone(), event.user().clone(), event.number()) };
        let (id, keys) = (event.id(item, lane), &self.ticket_keys);
        match *event {
            TicketEvent::Admitted { at, expires_at, .. } => {
                let body = TokenActivated::new(
                    keys,
                    (ticket, batch.lane_name.clone()),
                    id,
                    at,
                    expires_at,
                );
                Record::from_event(&body, &self.topics)
            }
            TicketEvent::Ended { at, reason, .. } => {
                let body =
                    TokenClosed::new(keys, (ticket, batch.lane_name.clone()), id, at, reason);
                Record::from_event(&body, &self.topics)
            }
        }
    }
}

#[async_trait]
impl EventSink for KafkaSink {
    fn takes_controls(&self) -> bool {
        true
    }

    async fn publish_controls(&self, controls: &[ItemControl]) -> Result<()> {
        let record = |control: &ItemControl| {
            Record::from_event(&ControlChanged::new(control, &self.ticket_keys), &self.topics)
        };
        let records = controls.iter().map(record).collect::<Result<Vec<_>>>()?;
        self.controls.publish(&records).await
    }

    fn session(&self) -> Box<dyn SinkSession + '_> {
        Box::new(KafkaSession { sink: self, session: self.publisher.session() })
    }
}

#[async_trait]
impl SinkSession for KafkaSession<'_> {
    async fn send(&self, batches: &[OutboxBatch], tracer: &Tracer) -> Result<PendingDelivery> {
        self.session.send(self.sink.records(batches, tracer)).await
    }

    async fn abort(self: Box<Self>) {
        self.session.abort().await;
    }
}

impl fmt::Debug for KafkaSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSink").field("topics", &self.topics).finish_non_exhaustive()
    }
}

/// Adds the headers that say where in the outbox an event was.
fn with_origin(record: Record, batch: &OutboxBatch, index: usize) -> Record {
    let record = record.with(SEQUENCE, &outbox_sequence(batch, index));
    match batch.epoch {
        Some(epoch) => record.with(EPOCH, &epoch.0.to_string()),
        None => record,
    }
}

/// Returns the events that are published, with their index in their batch. Events of reserved lines
/// (warm-up of a pod) are not.
pub(super) fn public_events(
    batches: &[OutboxBatch],
) -> impl Iterator<Item = (&OutboxBatch, usize, &TicketEvent)> {
    let public = batches.iter().filter(|batch| !batch.item.is_reserved());
    public.flat_map(|batch| {
        batch.events.iter().enumerate().map(move |(index, event)| (batch, index, event))
    })
}

/// Returns the position of an event in the outbox as text that sorts. `token.activated` and
/// `token.closed` are two topics, and their timestamps do not show which event came first.
#[must_use]
pub fn outbox_sequence(batch: &OutboxBatch, index: usize) -> String {
    let (time, count) = batch.id.split_once('-').unwrap_or((&batch.id, "0"));
    format!("{time:0>16}-{count:0>8}-{index:04}")
}
