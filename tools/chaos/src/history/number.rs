use std::fmt;

use daegi_domain::{Lane, Number, Ticket};
use serde::{Deserialize, Serialize};

/// The number of a ticket: each lane counts its own. Numbers of one lane are in order of arrival; the order of two
/// lanes means nothing.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(from = "WireNumber", into = "WireNumber")]
pub struct TicketNumber {
    /// Index of the lane; 0 is the standard lane.
    pub lane: u8,
    /// The number in the lane.
    pub number: u64,
}

/// A plain number for the standard lane, otherwise lane and number.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WireNumber {
    Standard(u64),
    InLane(u8, u64),
}

impl From<WireNumber> for TicketNumber {
    fn from(wire: WireNumber) -> Self {
        match wire {
            WireNumber::Standard(number) => number.into(),
            WireNumber::InLane(lane, number) => Self { lane, number },
        }
    }
}

impl From<TicketNumber> for WireNumber {
    fn from(TicketNumber { lane, number }: TicketNumber) -> Self {
        if lane == 0 { Self::Standard(number) } else { Self::InLane(lane, number) }
    }
}

/// A number of the standard lane.
impl From<u64> for TicketNumber {
    fn from(number: u64) -> Self {
        Self { lane: 0, number }
    }
}

impl From<(Lane, Number)> for TicketNumber {
    fn from((lane, number): (Lane, Number)) -> Self {
        // A line has nine lanes at most.
        Self { lane: u8::try_from(lane.index()).unwrap_or(u8::MAX), number: number.0 }
    }
}

impl From<&Ticket> for TicketNumber {
    fn from(ticket: &Ticket) -> Self {
        (ticket.lane, ticket.number).into()
    }
}

impl fmt::Display for TicketNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lane {
            0 => write!(f, "{}", self.number),
            lane => write!(f, "{}/{lane}", self.number),
        }
    }
}
