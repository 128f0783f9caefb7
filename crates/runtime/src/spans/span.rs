use std::time::{SystemTime, UNIX_EPOCH};

use daegi_domain::{ItemId, Lane, Number, SpanId, TicketStep, TraceContext, TraceId};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span as Message;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};

use super::random_span_id;

/// The `sampled` flag of W3C Trace Context.
const SAMPLED: u32 = 1;

/// A span of a ticket, as OTLP encodes it.
#[derive(Debug, Clone)]
pub struct Span(pub(super) Message);

impl Span {
    /// The span of a step of a ticket. The join is the parent of all others.
    pub(super) fn for_step(
        step: TicketStep,
        trace: TraceId,
        (item, lane, number): (&ItemId, Lane, Number),
        at: SystemTime,
    ) -> Self {
        let own = step.span(item, lane, number);
        let (kind, parent) = match step {
            TicketStep::Join => (SpanKind::Server, None),
            TicketStep::Admit | TicketStep::End => {
                (SpanKind::Producer, Some(TicketStep::Join.span(item, lane, number)))
            }
        };
        Self::new(step.name(), kind, (trace, own, parent), at).of(item, lane, number)
    }

    /// The span of a call. Its id is random, because the call may be repeated.
    pub(super) fn for_call(
        name: &str,
        trace: TraceId,
        (item, lane, number): (&ItemId, Lane, Number),
        at: SystemTime,
    ) -> Self {
        let ids = (trace, random_span_id(), Some(TicketStep::Join.span(item, lane, number)));
        Self::new(name, SpanKind::Server, ids, at).of(item, lane, number)
    }

    fn new(
        name: &str,
        kind: SpanKind,
        (trace, own, parent): (TraceId, SpanId, Option<SpanId>),
        at: SystemTime,
    ) -> Self {
        Self(Message {
            trace_id: trace.0.to_be_bytes().into(),
            span_id: own.0.to_be_bytes().into(),
            parent_span_id: parent.map(|id| id.0.to_be_bytes().into()).unwrap_or_default(),
            flags: SAMPLED,
            name: name.to_owned(),
            kind: kind.into(),
            start_time_unix_nano: nanos(at),
            ..Message::default()
        })
    }

    fn of(self, item: &ItemId, lane: Lane, number: Number) -> Self {
        let span = self.with("daegi.item", item.as_str()).with_number("daegi.number", number.0);
        // Absent for the standard lane, as in events.
        if lane.is_standard() { span } else { span.with_number("daegi.lane", lane.index() as u64) }
    }

    /// Adds a text attribute. It must not identify the user.
    #[must_use]
    pub fn with(self, key: &str, text: &str) -> Self {
        self.attribute(key, Value::StringValue(text.to_owned()))
    }

    /// Adds a number attribute.
    #[must_use]
    pub fn with_number(self, key: &str, number: u64) -> Self {
        self.attribute(key, Value::IntValue(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn attribute(mut self, key: &str, value: Value) -> Self {
        self.0.attributes.push(attribute(key, value));
        self
    }

    /// Adds a link to the caller's span. It is not a parent, because the caller's trace ends with
    /// its request and the ticket's continues.
    pub(super) fn with_link(mut self, caller: Option<&TraceContext>) -> Self {
        self.0.links.extend(caller.map(|caller| Link {
            trace_id: caller.trace.0.to_be_bytes().into(),
            span_id: caller.span.0.to_be_bytes().into(),
            flags: u32::from(caller.sampled),
            ..Link::default()
        }));
        self
    }

    /// Sets the end, not before the start, because clocks of two machines may differ.
    pub(super) fn finish(mut self, at: SystemTime) -> Self {
        self.0.end_time_unix_nano = nanos(at).max(self.0.start_time_unix_nano);
        self
    }
}

pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

fn nanos(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
