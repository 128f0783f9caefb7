//! The trace of a ticket, from the join to its end.
//!
//! A join and its admission are minutes apart and happen in different processes, and no trace context is
//! stored in between. So ids are not passed on: every process computes the same ids from the ticket. See
//! `docs/adr/011-traces.md`.

mod context;
mod ratio;

use std::fmt;

use sha2::{Digest, Sha256};

use crate::ids::NumberInLane;
use crate::{ItemId, Lane, Number};

pub use context::TraceContext;
pub use ratio::{SampleRatio, SampleRatioError};

/// Prefixes that keep trace ids, span ids and other hashes distinct. They must never change, because old and
/// new processes of a rolling upgrade must compute the same ids.
const TRACE_IDS: &str = "daegi trace";
const SPAN_IDS: &str = "daegi span";

/// The id of the trace of one ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub u128);

/// The id of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

/// A step that happens to a ticket at most once, so that its span id can be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketStep {
    /// The user joined.
    Join,
    /// The ticket was admitted.
    Admit,
    /// The ticket ended.
    End,
}

impl TraceId {
    /// Returns the trace of a ticket, computed from item, lane and number: they identify the ticket without
    /// identifying the user.
    #[must_use]
    pub fn of(item: &ItemId, lane: Lane, number: Number) -> Self {
        let digest = digest(TRACE_IDS, item, NumberInLane(lane, number));
        Self(digest.iter().take(16).fold(0, |id, byte| id << 8 | u128::from(*byte)))
    }
}

impl TicketStep {
    /// Returns the span's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Admit => "activate",
            Self::End => "close",
        }
    }

    /// Returns the span of this step of a ticket.
    #[must_use]
    pub fn span(self, item: &ItemId, lane: Lane, number: Number) -> SpanId {
        let ids = format!("{SPAN_IDS}\n{}", self.name());
        let digest = digest(&ids, item, NumberInLane(lane, number));
        SpanId(digest.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte)))
    }
}

/// Hashes prefix, item, number and lane. Item ids contain no line break, so that different tickets have different
/// texts.
fn digest(ids: &str, item: &ItemId, number: NumberInLane) -> [u8; 32] {
    Sha256::digest(format!("{ids}\n{item}\n{number}")).into()
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const STEPS: [TicketStep; 3] = [TicketStep::Join, TicketStep::Admit, TicketStep::End];

    fn item(id: &str) -> ItemId {
        ItemId::parse(id).unwrap()
    }

    #[test]
    fn every_ticket_has_a_distinct_trace() {
        let tickets = [
            ("a", 0, 1),
            ("a", 0, 2),
            ("a", 0, 11),
            ("a1", 0, 1),
            ("b", 0, 1),
            ("a", 1, 1),
            ("a", 2, 1),
        ];
        let traces = tickets.map(|(id, index, number)| {
            TraceId::of(&item(id), Lane::numbered(index).unwrap(), Number(number))
        });
        assert_eq!(HashSet::from(traces).len(), tickets.len());
    }

    #[test]
    fn every_step_of_a_ticket_has_a_distinct_span() {
        let spans = STEPS.map(|step| step.span(&item("a"), Lane::STANDARD, Number(1)));
        assert_eq!(HashSet::from(spans).len(), STEPS.len());
        let join = |index, number| {
            TicketStep::Join.span(&item("a"), Lane::numbered(index).unwrap(), Number(number))
        };
        assert_ne!(join(0, 1), join(0, 2));
        assert_ne!(join(0, 1), join(1, 1));
    }

    /// A process of another version must compute the same ids.
    #[test]
    fn ids_never_change() {
        let (item, number) = (item("concert"), Number(114_870_076_687_617));
        let known = "3255b886f3e172f98615309bb9670663";
        let standard = Lane::STANDARD;
        assert_eq!(TraceId::of(&item, standard, number).to_string(), known);
        let spans = STEPS.map(|step| step.span(&item, standard, number).to_string());
        assert_eq!(spans, ["4692be0a45d66ab2", "653ad71ffedfba4f", "e2e1a755b9aebed5"]);
        let second = Lane::numbered(2).unwrap();
        assert_eq!(
            TraceId::of(&item, second, number).to_string(),
            "5193219841454c83d432b97e4cacb29e"
        );
        assert_eq!(TicketStep::Join.span(&item, second, number).to_string(), "d6fbf370ed9a614f");
    }
}
