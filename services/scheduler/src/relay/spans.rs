//! Spans of published events.

use daegi_domain::{TicketEvent, TicketStep, TraceContext};
use daegi_runtime::Tracer;
use daegi_runtime::spans::Span;
use daegi_store::OutboxBatch;

use super::sink::public_events;

/// Returns the spans of traced events, which start when the event happened and end when the broker
/// has confirmed it.
pub(super) fn start(tracer: &Tracer, batches: &[OutboxBatch]) -> Vec<Span> {
    if !tracer.is_on() {
        return Vec::new();
    }
    let spans = public_events(batches).filter_map(|(batch, _, event)| {
        let span = start_one(tracer, batch, event)?;
        Some(match batch.epoch {
            Some(epoch) => span.with_number("daegi.epoch", epoch.0),
            None => span,
        })
    });
    spans.collect()
}

/// Returns the `traceparent` of an event.
pub(super) fn context(
    tracer: &Tracer,
    batch: &OutboxBatch,
    event: &TicketEvent,
) -> Option<TraceContext> {
    tracer.context(step(event), &batch.item, batch.lane, event.number())
}

fn start_one(tracer: &Tracer, batch: &OutboxBatch, event: &TicketEvent) -> Option<Span> {
    let start = |at| tracer.step(step(event), &batch.item, batch.lane, event.number(), at);
    match event {
        TicketEvent::Admitted { at, .. } => start(*at),
        TicketEvent::Ended { at, reason, .. } => {
            Some(start(*at)?.with("daegi.reason", reason.name()))
        }
    }
}

fn step(event: &TicketEvent) -> TicketStep {
    match event {
        TicketEvent::Admitted { .. } => TicketStep::Admit,
        TicketEvent::Ended { .. } => TicketStep::End,
    }
}
