//! One session of a partition: the next events are read while earlier ones are in flight.
//!
//! All events go through one sink session, in order. Any failure ends the session, and the next one
//! starts with the oldest event that is still in the outbox.

use std::collections::VecDeque;

use daegi_domain::{LineEvent, TicketEvent, Topic};
use daegi_kafka::PendingDelivery;
use daegi_runtime::Tracer;
use daegi_runtime::spans::Span;
use daegi_store::{OutboxBatch, OutboxStore};
use metrics::counter;

use super::RelayError;
use super::recent_events::RecentEvents;
use super::sink::{EventSink, SinkSession, public_events};
use super::spans;

/// Events per read, approximately. A batch holds 1 to 100 events.
const TARGET_EVENTS_PER_READ: usize = 1_000;

/// Batches of the first read, while the size of the batches is unknown.
const INITIAL_BATCHES: u32 = 4;

/// Maximum number of batches per read, however small they are.
const MAX_BATCHES: u32 = 500;

/// Reads whose events may be in flight: enough to hide the latency of the broker. With the size of a
/// read it bounds the memory of a partition.
const MAX_IN_FLIGHT_READS: usize = 4;

/// Reads per session, so that the relay reports progress under a load that never ends.
const MAX_READS_PER_RUN: usize = 64;

/// The relay of one partition.
pub(super) struct PartitionRelay<'a> {
    store: &'a dyn OutboxStore,
    sink: &'a dyn EventSink,
    session: &'a dyn SinkSession,
    recent: &'a RecentEvents,
    tracer: &'a Tracer,
    partition: u16,
    in_flight: VecDeque<InFlight>,
    /// Events that were confirmed and removed.
    published: usize,
}

/// The events of one read that were sent and are not confirmed.
struct InFlight {
    ids: Vec<String>,
    events: usize,
    counts: EventCounts,
    /// The spans of the traced ones.
    spans: Vec<Span>,
    delivery: PendingDelivery,
}

/// Public events by type.
#[derive(Debug, Default)]
struct EventCounts {
    activated: u64,
    closed: u64,
    lines_opened: u64,
    lines_closed: u64,
}

impl<'a> PartitionRelay<'a> {
    pub(super) fn new(
        store: &'a dyn OutboxStore,
        (sink, session): (&'a dyn EventSink, &'a dyn SinkSession),
        recent: &'a RecentEvents,
        tracer: &'a Tracer,
        partition: u16,
    ) -> Self {
        let in_flight = VecDeque::new();
        Self { store, sink, session, recent, tracer, partition, in_flight, published: 0 }
    }

    /// Publishes until the outbox is empty, or for [`MAX_READS_PER_RUN`] reads. Returns how many events
    /// left the outbox.
    pub(super) async fn run(mut self) -> Result<usize, RelayError> {
        let sent = self.send_all().await;
        if let Err(error @ RelayError::Kafka(_)) = sent {
            return Err(error);
        }
        // If the store fails meanwhile, events that were sent are still waited for and acknowledged.
        while let Some(oldest) = self.in_flight.pop_front() {
            self.acknowledge(oldest).await?;
        }
        sent.map(|()| self.published)
    }

    async fn send_all(&mut self) -> Result<(), RelayError> {
        let (store, partition) = (self.store, self.partition);
        let read = async |after: Option<&str>, limit| {
            store.outbox_read(partition, after, limit).await.map_err(RelayError::from)
        };
        let mut limit = INITIAL_BATCHES;
        let mut batches = read(None, limit).await?;
        for _ in 0..MAX_READS_PER_RUN {
            let Some(last) = batches.last() else { break };
            let after = last.id.clone();
            let is_end = batches.len() < limit as usize;
            limit = next_limit(&batches);
            if is_end {
                return self.send(batches).await;
            }
            // Redis replies to the next read while these events are serialized.
            let (next, sent) = tokio::join!(read(Some(&after), limit), self.send(batches));
            sent?;
            batches = next?;
        }
        Ok(())
    }

    /// Sends events, and waits for the oldest ones if too many are in flight.
    async fn send(&mut self, batches: Vec<OutboxBatch>) -> Result<(), RelayError> {
        self.publish(batches).await?;
        if self.in_flight.len() >= MAX_IN_FLIGHT_READS
            && let Some(oldest) = self.in_flight.pop_front()
        {
            self.acknowledge(oldest).await?;
        }
        Ok(())
    }

    async fn publish(&mut self, batches: Vec<OutboxBatch>) -> Result<(), RelayError> {
        let delivery = self.session.send(&batches, self.tracer).await?;
        self.recent.record(&batches);
        let (counts, events) = (EventCounts::new(&batches), event_count(&batches));
        let spans = spans::start(self.tracer, &batches);
        let ids = batches.into_iter().map(|batch| batch.id).collect();
        self.in_flight.push_back(InFlight { ids, events, counts, spans, delivery });
        Ok(())
    }

    /// Waits for the confirmation and then removes the events from the outbox.
    async fn acknowledge(&mut self, sent: InFlight) -> Result<(), RelayError> {
        sent.delivery.wait().await?;
        sent.counts.record(self.sink.counter());
        sent.spans.into_iter().for_each(|span| self.tracer.end(span));
        self.store.outbox_ack(self.partition, &sent.ids).await?;
        self.published += sent.events;
        Ok(())
    }
}

impl EventCounts {
    fn new(batches: &[OutboxBatch]) -> Self {
        let mut counts = Self::default();
        for (_, _, event) in public_events(batches) {
            match event {
                TicketEvent::Admitted { .. } => counts.activated += 1,
                TicketEvent::Ended { .. } => counts.closed += 1,
            }
        }
        for batch in batches {
            match batch.line {
                Some(LineEvent::Opened { .. }) => counts.lines_opened += 1,
                Some(LineEvent::Closed { .. }) => counts.lines_closed += 1,
                None => {}
            }
        }
        counts
    }

    fn record(&self, name: &'static str) {
        for (topic, events) in [
            (Topic::TokenActivated, self.activated),
            (Topic::TokenClosed, self.closed),
            (Topic::LineOpened, self.lines_opened),
            (Topic::LineClosed, self.lines_closed),
        ] {
            counter!(name, "type" => topic.event_type()).increment(events);
        }
    }
}

fn event_count(batches: &[OutboxBatch]) -> usize {
    batches.iter().map(OutboxBatch::len).sum()
}

/// Returns how many batches hold about [`TARGET_EVENTS_PER_READ`], if the next ones are like these.
fn next_limit(batches: &[OutboxBatch]) -> u32 {
    let fitting = TARGET_EVENTS_PER_READ * batches.len() / event_count(batches).max(1);
    u32::try_from(fitting).unwrap_or(MAX_BATCHES).clamp(1, MAX_BATCHES)
}
