//! A ticket of a line, its status and how it ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ItemId, Lane, Number, UserId};

/// A ticket: the item, the user, and the number in a lane of the item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The line's item.
    pub item: ItemId,
    /// Who holds it.
    pub user: UserId,
    /// Its number in the lane.
    pub number: Number,
    /// The lane that issued it.
    pub lane: Lane,
}

impl Ticket {
    /// A ticket of the standard lane.
    pub fn new(item: ItemId, user: UserId, number: Number) -> Self {
        Self { item, user, number, lane: Lane::STANDARD }
    }
}

/// The status of a ticket, as its user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// In the line.
    Waiting,
    /// Admitted: the response has a pass.
    Enterable,
    /// The entry expired.
    Expired,
    /// The order was placed.
    Completed,
    /// The user left, or gave the entry back.
    Left,
    /// The user was absent too long.
    Abandoned,
    /// The user joined again and has a new ticket.
    Replaced,
}

/// How a ticket ends.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EndReason {
    /// The entry was not used in time.
    Expired,
    /// The order was placed.
    Completed,
    /// The person left, or gave the entry back.
    Left,
    /// Unseen for too long.
    Abandoned,
    /// The person joined again and took a new place.
    Replaced,
}

impl EndReason {
    /// Every reason, in the order of their codes.
    pub const ALL: [Self; 5] =
        [Self::Expired, Self::Completed, Self::Left, Self::Abandoned, Self::Replaced];

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "EXPIRED",
            Self::Completed => "COMPLETED",
            Self::Left => "LEFT",
            Self::Abandoned => "ABANDONED",
            Self::Replaced => "REPLACED",
        }
    }

    /// Returns the letter that the store writes.
    pub fn code(self) -> &'static str {
        match self {
            Self::Expired => "E",
            Self::Completed => "C",
            Self::Left => "L",
            Self::Abandoned => "A",
            Self::Replaced => "R",
        }
    }

    /// Returns the reason of a letter that the store wrote.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

impl From<EndReason> for Status {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Expired => Self::Expired,
            EndReason::Completed => Self::Completed,
            EndReason::Left => Self::Left,
            EndReason::Abandoned => Self::Abandoned,
            EndReason::Replaced => Self::Replaced,
        }
    }
}

impl Status {
    /// Returns whether no other status can follow.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Enterable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_named_as_in_json() {
        for reason in EndReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
    }
}
