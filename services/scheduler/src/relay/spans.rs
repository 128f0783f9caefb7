//! What traces hear of events.

use daegi_domain::{ItemId, LineEvent, Step, TraceContext};
use daegi_runtime::Traces;
use daegi_runtime::traces::Span;
use daegi_store::OutboxBatch;

use super::outlet::told;

/// The spans of those events that are traced, from when they happened. They end when the broker has
/// confirmed them.
pub(super) fn begun(traces: &Traces, batches: &[OutboxBatch]) -> Vec<Span> {
    if !traces.is_on() {
        return Vec::new();
    }
    let spans = told(batches).filter_map(|(batch, _, event)| {
        let span = begin(traces, &batch.item, event)?;
        Some(match batch.epoch {
            Some(epoch) => span.with_number("daegi.epoch", epoch.0),
            None => span,
        })
    });
    spans.collect()
}

/// What readers of an event are told about its trace.
pub(super) fn context(traces: &Traces, item: &ItemId, event: &LineEvent) -> Option<TraceContext> {
    traces.context(step(event), item, event.number())
}

fn begin(traces: &Traces, item: &ItemId, event: &LineEvent) -> Option<Span> {
    let begin = |at| traces.step(step(event), item, event.number(), at);
    match event {
        LineEvent::Activated { at, .. } => begin(*at),
        LineEvent::Closed { at, reason, .. } => {
            Some(begin(*at)?.with("daegi.reason", reason.name()))
        }
    }
}

fn step(event: &LineEvent) -> Step {
    match event {
        LineEvent::Activated { .. } => Step::Activate,
        LineEvent::Closed { .. } => Step::Close,
    }
}
