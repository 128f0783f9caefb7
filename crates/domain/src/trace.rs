//! The trace of a ticket, from the join to its end.
//!
//! Minutes lie between a join and the admission, and other processes; nothing is kept for a person
//! meanwhile. So nobody passes ids on: whoever knows the ticket computes them, and everybody
//! computes the same. See `docs/adr/011-traces.md`.

mod context;
mod ratio;

use std::fmt;

use sha2::{Digest, Sha256};

use crate::{ItemId, Number};

pub use context::TraceContext;
pub use ratio::{Ratio, RatioError};

/// Keep ids apart from each other and from anything else that is hashed anywhere. Fixed for ever:
/// while a fleet is replaced, old and new processes must agree.
const TRACE_IDS: &str = "daegi trace";
const SPAN_IDS: &str = "daegi span";

/// Names all that happens to one ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub u128);

/// Names one thing that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

/// What happens to a ticket once at most, so that its span has an id known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The person took a place.
    Join,
    /// The person was let in.
    Activate,
    /// The ticket ended.
    Close,
}

impl TraceId {
    /// The trace of a ticket. The item and the number say which one: no two tickets of an item ever
    /// have the same, and neither says who the person is.
    #[must_use]
    pub fn of(item: &ItemId, number: Number) -> Self {
        let digest = digest(TRACE_IDS, item, number);
        Self(digest.iter().take(16).fold(0, |id, byte| id << 8 | u128::from(*byte)))
    }
}

impl Step {
    /// The span's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Activate => "activate",
            Self::Close => "close",
        }
    }

    /// The span of this step of a ticket.
    #[must_use]
    pub fn span(self, item: &ItemId, number: Number) -> SpanId {
        let digest = digest(&format!("{SPAN_IDS}\n{}", self.name()), item, number);
        SpanId(digest.iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte)))
    }
}

/// No item has a line break in its id, so that no two tickets are written alike.
fn digest(ids: &str, item: &ItemId, number: Number) -> [u8; 32] {
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

    const STEPS: [Step; 3] = [Step::Join, Step::Activate, Step::Close];

    fn item(id: &str) -> ItemId {
        ItemId::parse(id).unwrap()
    }

    #[test]
    fn every_ticket_has_a_trace_of_its_own() {
        let tickets = [("a", 1), ("a", 2), ("a", 11), ("a1", 1), ("b", 1)];
        let traces = tickets.map(|(id, number)| TraceId::of(&item(id), Number(number)));
        assert_eq!(HashSet::from(traces).len(), tickets.len());
    }

    #[test]
    fn every_step_of_a_ticket_has_a_span_of_its_own() {
        let spans = STEPS.map(|step| step.span(&item("a"), Number(1)));
        assert_eq!(HashSet::from(spans).len(), STEPS.len());
        assert_ne!(Step::Join.span(&item("a"), Number(1)), Step::Join.span(&item("a"), Number(2)));
    }

    /// Another process, perhaps of another version, computes them, too.
    #[test]
    fn ids_do_not_change_with_the_way_they_are_computed() {
        let (item, number) = (item("concert"), Number(114_870_076_687_617));
        let known = "3255b886f3e172f98615309bb9670663";
        assert_eq!(TraceId::of(&item, number).to_string(), known);
        let spans = STEPS.map(|step| step.span(&item, number).to_string());
        assert_eq!(spans, ["4692be0a45d66ab2", "653ad71ffedfba4f", "e2e1a755b9aebed5"]);
    }
}
