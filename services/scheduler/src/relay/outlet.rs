//! Where events go.

use std::sync::Arc;

use daegi_domain::{
    ItemId, LineEvent, Ticket, TicketKeys, TokenActivated, TokenClosed, Topic, Topics,
};
use daegi_kafka::{Publisher, Record, Result};
use daegi_runtime::Config;
use daegi_store::OutboxBatch;
use metrics::counter;

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
}

/// What turns events into messages.
pub struct Bridge {
    publisher: Publisher,
    topics: Topics,
    ticket_keys: TicketKeys,
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").field("topics", &self.topics).finish_non_exhaustive()
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

    /// Takes events over; after this they need not be kept.
    pub(super) async fn take(&self, batches: &[OutboxBatch]) -> Result<()> {
        let meter = match self {
            Self::Nowhere => meters::RELAY_DROPPED,
            Self::Kafka(bridge) => {
                bridge.publish(batches).await?;
                meters::RELAY_PUBLISHED
            }
        };
        count(meter, batches);
        Ok(())
    }
}

impl Bridge {
    async fn publish(&self, batches: &[OutboxBatch]) -> Result<()> {
        let records: Result<Vec<_>> =
            told(batches).map(|(item, event)| self.record(item, event)).collect();
        self.publisher.publish(&records?).await
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
fn told(batches: &[OutboxBatch]) -> impl Iterator<Item = (&ItemId, &LineEvent)> {
    let public = batches.iter().filter(|batch| !batch.item.is_reserved());
    public.flat_map(|batch| batch.events.iter().map(|event| (&batch.item, event)))
}

fn count(meter: &'static str, batches: &[OutboxBatch]) {
    let mut counts = [(Topic::TokenActivated, 0), (Topic::TokenClosed, 0)];
    for (_, event) in told(batches) {
        match event {
            LineEvent::Activated { .. } => counts[0].1 += 1,
            LineEvent::Closed { .. } => counts[1].1 += 1,
        }
    }
    for (topic, events) in counts {
        counter!(meter, "type" => topic.event_type()).increment(events);
    }
}
