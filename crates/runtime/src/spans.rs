//! Spans of tickets, for OpenTelemetry. Without a configured collector tracing is off and costs a
//! join one branch. Polls are never traced.
//!
//! Several processes make spans of one ticket. They form one trace, because their ids are derived
//! from the ticket ([`daegi_domain::trace`]). Spans carry item, lane, number and epoch, never the user. A
//! span that cannot be exported is counted and dropped; no request waits for the collector.

mod exporter;
mod span;

use std::sync::Arc;
use std::time::SystemTime;

use axum::http::HeaderMap;
use daegi_domain::{
    ItemId, Lane, Millis, Number, SampleRatio, SpanId, TicketStep, TraceContext, TraceId,
};
use metrics::{Counter, counter};
use tokio::sync::mpsc;

use crate::{Config, Shutdown};
use exporter::SpanExporter;
pub use span::Span;

/// Spans of this process, by `result`: `sent`, `dropped` (the queue was full) or `lost` (the
/// collector did not accept them).
pub const SPANS: &str = "daegi_trace_spans_total";

/// The header of W3C Trace Context.
const TRACEPARENT: &str = "traceparent";

/// Maximum number of queued spans, about 500 bytes each.
const QUEUE_CAPACITY: usize = 4_096;

/// Makes spans if tracing is on. Clones share everything; the default is off.
#[derive(Debug, Clone, Default)]
pub struct Tracer(Option<Arc<TracerInner>>);

#[derive(Debug)]
struct TracerInner {
    ratio: SampleRatio,
    queue: mpsc::Sender<Span>,
    dropped: Counter,
}

/// The start of a request that may become a span, and the span of its caller.
#[derive(Debug, Clone, Copy)]
pub struct RequestStart {
    at: SystemTime,
    caller: Option<TraceContext>,
}

/// The calls that are traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracedCall {
    /// A ticket was issued. The first span of its trace.
    Join,
    /// The user left.
    Leave,
    /// The entry completed.
    Complete,
}

impl Tracer {
    /// Starts tracing as configured. A task of this shutdown exports the spans.
    #[must_use]
    pub fn start(config: &Config, shutdown: &Shutdown) -> Self {
        let Some(collector) = config.otlp.clone() else { return Self::default() };
        let (queue, spans) = mpsc::channel(QUEUE_CAPACITY);
        let exporter = SpanExporter::new(collector, config.role.binary(), spans);
        shutdown.spawn("span exporter", exporter.run(shutdown.token().clone(), config.drain));
        let dropped = counter!(SPANS, "result" => "dropped");
        Self(Some(Arc::new(TracerInner { ratio: config.trace_ratio, queue, dropped })))
    }

    /// Returns whether tracing is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Records the start of a request. Returns `None` if tracing is off.
    #[must_use]
    pub fn begin(&self, headers: &HeaderMap) -> Option<RequestStart> {
        self.0.as_ref().map(|_| RequestStart { at: SystemTime::now(), caller: caller(headers) })
    }

    /// Ends the span of a traced call.
    pub fn record_call(
        &self,
        call: TracedCall,
        item: &ItemId,
        lane: Lane,
        number: Number,
        start: &RequestStart,
    ) {
        let Some(trace) = self.sampled_trace(item, lane, number) else { return };
        let span = match call {
            TracedCall::Join => {
                Span::for_step(TicketStep::Join, trace, (item, lane, number), start.at)
            }
            TracedCall::Leave => Span::for_call("leave", trace, (item, lane, number), start.at),
            TracedCall::Complete => {
                Span::for_call("complete", trace, (item, lane, number), start.at)
            }
        };
        self.end(span.with_link(start.caller.as_ref()));
    }

    /// Starts the span of a step of a ticket. Returns `None` if the ticket is not traced.
    #[must_use]
    pub fn step(
        &self,
        step: TicketStep,
        item: &ItemId,
        lane: Lane,
        number: Number,
        at: Millis,
    ) -> Option<Span> {
        let trace = self.sampled_trace(item, lane, number)?;
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(at);
        Some(Span::for_step(step, trace, (item, lane, number), at))
    }

    /// Returns the trace context of a step of a ticket, the same for every repeat; `None` if
    /// tracing is off.
    #[must_use]
    pub fn context(
        &self,
        step: TicketStep,
        item: &ItemId,
        lane: Lane,
        number: Number,
    ) -> Option<TraceContext> {
        let tracer = self.0.as_ref()?;
        let (trace, span) = (TraceId::of(item, lane, number), step.span(item, lane, number));
        Some(TraceContext { trace, span, sampled: tracer.ratio.should_sample(trace) })
    }

    /// Ends a span and queues it. Never waits.
    pub fn end(&self, span: Span) {
        let Some(tracer) = &self.0 else { return };
        if tracer.queue.try_send(span.finish(SystemTime::now())).is_err() {
            tracer.dropped.increment(1);
        }
    }

    /// Returns the trace of a ticket if it is sampled.
    fn sampled_trace(&self, item: &ItemId, lane: Lane, number: Number) -> Option<TraceId> {
        let tracer = self.0.as_ref()?;
        Some(TraceId::of(item, lane, number)).filter(|trace| tracer.ratio.should_sample(*trace))
    }
}

/// Returns the context of the caller; `None` if the header is repeated.
fn caller(headers: &HeaderMap) -> Option<TraceContext> {
    let mut all = headers.get_all(TRACEPARENT).iter();
    let (first, second) = (all.next()?, all.next());
    second.is_none().then(|| TraceContext::parse(first.to_str().ok()?)).flatten()
}

/// Returns the id of a span that may occur repeatedly.
fn random_span_id() -> SpanId {
    SpanId(fastrand::u64(1..))
}
