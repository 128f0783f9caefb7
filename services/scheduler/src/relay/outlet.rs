//! Where events go.

use std::sync::Arc;

use daegi_domain::{
    ItemId, LineEvent, Ticket, TicketKeys, TokenActivated, TokenClosed, Topic, Topics,
};
use daegi_kafka::record::{EPOCH, SEQUENCE, TRACEPARENT};
use daegi_kafka::{Handed, Publisher, Record, Result, Stretch};
use daegi_runtime::{Config, Traces};
use daegi_store::OutboxBatch;
use metrics::counter;

use super::spans::context;
use crate::meters;

/// Where events go.
#[derive(Debug, Clone)]
pub enum Outlet {
    /// A mode of its own, not a placeholder: a waiting room without an order service that
    /// listens. Events are counted and dropped, because an outbox nobody reads would fill up
    /// and stop admission.
    Nowhere,
    /// To Kafka.
    Kafka(Arc<Bridge>),
    /// To somebody in this process, for simulations.
    Ear(Ear),
}

/// Hears events in their order, and says whether they have arrived.
#[derive(Clone)]
pub struct Ear(pub Arc<Hearing>);

/// What somebody does with events, in their order.
type Hearing = dyn Fn(&[OutboxBatch]) -> Result<()> + Send + Sync;

/// What turns events into messages.
pub struct Bridge {
    publisher: Publisher,
    topics: Topics,
    ticket_keys: TicketKeys,
}

/// A way for one stretch of events, in order.
pub(super) enum Passage<'a> {
    Nowhere,
    Ear(&'a Ear),
    Kafka(&'a Bridge, Stretch<'a>),
}

/// How many events others are told of, by type.
#[derive(Debug, Default)]
pub(super) struct Told {
    activated: u64,
    closed: u64,
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").field("topics", &self.topics).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Ear {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ear").finish_non_exhaustive()
    }
}

impl Outlet {
    /// Where a configuration says.
    ///
    /// # Errors
    /// If librdkafka refuses the brokers' addresses.
    pub fn of(config: &Config) -> Result<Self> {
        let Some(brokers) = config.kafka.brokers() else { return Ok(Self::Nowhere) };
        let publisher = Publisher::new(brokers)?;
        Ok(Self::kafka(publisher, config.topics.clone(), config.secrets.ticket_keys.clone()))
    }

    /// To Kafka, through this publisher; events carry tokens, which the keys write.
    #[must_use]
    pub fn kafka(publisher: Publisher, topics: Topics, ticket_keys: TicketKeys) -> Self {
        Self::Kafka(Arc::new(Bridge { publisher, topics, ticket_keys }))
    }

    /// Opens a way for a stretch of events, which begins with the oldest there is.
    pub(super) fn open(&self) -> Passage<'_> {
        match self {
            Self::Nowhere => Passage::Nowhere,
            Self::Ear(ear) => Passage::Ear(ear),
            Self::Kafka(bridge) => Passage::Kafka(bridge, bridge.publisher.begin()),
        }
    }
}

impl Passage<'_> {
    /// Sends events on their way, behind those of earlier calls.
    pub(super) async fn hand_over(
        &self,
        batches: &[OutboxBatch],
        traces: &Traces,
    ) -> Result<Handed> {
        match self {
            Self::Nowhere => Ok(Handed::default()),
            Self::Ear(ear) => (ear.0)(batches).map(|()| Handed::default()),
            Self::Kafka(bridge, stretch) => {
                stretch.hand_over(bridge.records(batches, traces)).await
            }
        }
    }

    /// Counts events that have arrived.
    pub(super) fn count(&self, told: &Told) {
        let meter = match self {
            Self::Nowhere => meters::RELAY_DROPPED,
            Self::Ear(_) | Self::Kafka(..) => meters::RELAY_PUBLISHED,
        };
        for (topic, events) in
            [(Topic::TokenActivated, told.activated), (Topic::TokenClosed, told.closed)]
        {
            counter!(meter, "type" => topic.event_type()).increment(events);
        }
    }

    /// After a failure: nothing more comes this way.
    pub(super) async fn give_up(self) {
        if let Self::Kafka(_, stretch) = self {
            stretch.give_up().await;
        }
    }
}

impl Told {
    pub(super) fn of(batches: &[OutboxBatch]) -> Self {
        let mut all = Self::default();
        for (_, _, event) in told(batches) {
            match event {
                LineEvent::Activated { .. } => all.activated += 1,
                LineEvent::Closed { .. } => all.closed += 1,
            }
        }
        all
    }
}

impl Bridge {
    fn records(
        &self,
        batches: &[OutboxBatch],
        traces: &Traces,
    ) -> impl Iterator<Item = Result<Record>> {
        told(batches).map(|(batch, place, event)| {
            let record = self.record(&batch.item, event)?.with(SEQUENCE, &sequence(batch, place));
            let record = match batch.epoch {
                Some(epoch) => record.with(EPOCH, &epoch.0.to_string()),
                None => record,
            };
            Ok(match context(traces, &batch.item, event) {
                Some(context) => record.with(TRACEPARENT, &context.to_string()),
                None => record,
            })
        })
    }

    fn record(&self, item: &ItemId, event: &LineEvent) -> Result<Record> {
        let (id, keys) = (event.id(item), &self.ticket_keys);
        let ticket =
            Ticket { item: item.clone(), user: event.user().clone(), number: event.number() };
        match *event {
            LineEvent::Activated { at, expires_at, .. } => {
                let body = TokenActivated::new(keys, ticket, id, at, expires_at);
                Record::event(&body, &self.topics)
            }
            LineEvent::Closed { at, reason, .. } => {
                let body = TokenClosed::new(keys, ticket, id, at, reason);
                Record::event(&body, &self.topics)
            }
        }
    }
}

/// Events that others are told of, in order: a pod's warm-up is nobody else's business.
pub(super) fn told(
    batches: &[OutboxBatch],
) -> impl Iterator<Item = (&OutboxBatch, usize, &LineEvent)> {
    let public = batches.iter().filter(|batch| !batch.item.is_reserved());
    public.flat_map(|batch| {
        batch.events.iter().enumerate().map(move |(place, event)| (batch, place, event))
    })
}

/// Where an event stands in the outbox, as text that sorts: `token.activated` and `token.closed` are
/// two topics, and a reader of both cannot tell from times what came first.
#[must_use]
pub fn sequence(batch: &OutboxBatch, place: usize) -> String {
    let (time, count) = batch.id.split_once('-').unwrap_or((&batch.id, "0"));
    format!("{time:0>16}-{count:0>8}-{place:04}")
}
