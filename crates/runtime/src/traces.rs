//! Spans of tickets, for OpenTelemetry. Off unless a collector is configured, and then a join pays
//! one branch for it; polls know nothing of it either way.
//!
//! A ticket's spans are made in several processes and are one trace nevertheless, because their ids
//! follow from the ticket ([`daegi_domain::trace`]). They say item, number and term, never who the
//! person is. A span that cannot be delivered is counted and gone: nobody waits for a collector.

mod export;
mod span;

use std::sync::Arc;
use std::time::SystemTime;

use axum::http::HeaderMap;
use daegi_domain::{ItemId, Millis, Number, Ratio, SpanId, Step, TraceContext, TraceId};
use metrics::{Counter, counter};
use tokio::sync::mpsc;

use crate::{Config, Shutdown};
use export::Export;
pub use span::Span;

/// Spans of this process, by `result`: `sent`, `dropped` (too many waited to be sent) or `lost` (the
/// collector did not take them).
pub const SPANS: &str = "daegi_trace_spans_total";

/// The header in which services tell each other of a trace.
const TRACEPARENT: &str = "traceparent";

/// How many spans wait to be sent; some 500 bytes each.
const QUEUE: usize = 4_096;

/// Makes spans, or does not. Clones share everything; the default is off.
#[derive(Debug, Clone, Default)]
pub struct Traces(Option<Arc<Tracer>>);

#[derive(Debug)]
struct Tracer {
    ratio: Ratio,
    queue: mpsc::Sender<Span>,
    dropped: Counter,
}

/// A request that may become a span: when it began, and in which span of the caller.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    at: SystemTime,
    caller: Option<TraceContext>,
}

/// What people and services ask for that is worth a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A place was taken. The first span of a ticket.
    Join,
    /// The person left.
    Leave,
    /// The order was placed.
    Complete,
}

impl Traces {
    /// What a configuration says. Spans are sent by a task of this shutdown, which waits for it.
    #[must_use]
    pub fn start(config: &Config, shutdown: &Shutdown) -> Self {
        let Some(collector) = &config.otlp_endpoint else { return Self::default() };
        let (queue, spans) = mpsc::channel(QUEUE);
        let export = Export::new(collector, config.role.binary(), spans);
        shutdown.spawn("traces", export.run(shutdown.token().clone(), config.drain));
        let dropped = counter!(SPANS, "result" => "dropped");
        Self(Some(Arc::new(Tracer { ratio: config.trace_ratio, queue, dropped })))
    }

    /// Whether spans are made at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// A request begins. None where traces are off.
    #[must_use]
    pub fn begin(&self, headers: &HeaderMap) -> Option<Begun> {
        self.0.as_ref().map(|_| Begun { at: SystemTime::now(), caller: caller(headers) })
    }

    /// A request about a ticket was answered.
    pub fn answered(&self, call: Call, item: &ItemId, number: Number, begun: &Begun) {
        let Some(trace) = self.kept(item, number) else { return };
        let span = match call {
            Call::Join => Span::begin(Step::Join, trace, item, number, begun.at),
            Call::Leave => Span::ask("leave", trace, item, number, begun.at),
            Call::Complete => Span::ask("complete", trace, item, number, begun.at),
        };
        self.end(span.linked(begun.caller.as_ref()));
    }

    /// A step of a ticket that began at this moment and goes on. None if it is not traced.
    #[must_use]
    pub fn step(&self, step: Step, item: &ItemId, number: Number, at: Millis) -> Option<Span> {
        let trace = self.kept(item, number)?;
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(at);
        Some(Span::begin(step, trace, item, number, at))
    }

    /// What others are told about a step of a ticket, as a `traceparent`; the same for every
    /// repeat. None where traces are off.
    #[must_use]
    pub fn context(&self, step: Step, item: &ItemId, number: Number) -> Option<TraceContext> {
        let tracer = self.0.as_ref()?;
        let (trace, span) = (TraceId::of(item, number), step.span(item, number));
        Some(TraceContext { trace, span, sampled: tracer.ratio.keeps(trace) })
    }

    /// A span is over. Never waits.
    pub fn end(&self, span: Span) {
        let Some(tracer) = &self.0 else { return };
        if tracer.queue.try_send(span.ended(SystemTime::now())).is_err() {
            tracer.dropped.increment(1);
        }
    }

    /// The trace of a ticket, if its spans are made and kept.
    fn kept(&self, item: &ItemId, number: Number) -> Option<TraceId> {
        let tracer = self.0.as_ref()?;
        Some(TraceId::of(item, number)).filter(|trace| tracer.ratio.keeps(*trace))
    }
}

/// Several headers would be several callers, and so none.
fn caller(headers: &HeaderMap) -> Option<TraceContext> {
    let mut all = headers.get_all(TRACEPARENT).iter();
    let (first, second) = (all.next()?, all.next());
    second.is_none().then(|| TraceContext::parse(first.to_str().ok()?)).flatten()
}

/// An id for what may happen many times.
fn any_span() -> SpanId {
    SpanId(fastrand::u64(1..))
}
