//! A ticket is a place in a line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ItemId, Number, UserId};

/// A place in a line: who holds it, where, and its number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The line's item.
    pub item: ItemId,
    /// Who holds it.
    pub user: UserId,
    /// Where in the line.
    pub number: Number,
}

/// What a person is told about their ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// In the line.
    Waiting,
    /// Let in: a pass is given.
    Enterable,
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

    /// The word, as JSON writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Expired => "EXPIRED",
            Self::Completed => "COMPLETED",
            Self::Left => "LEFT",
            Self::Abandoned => "ABANDONED",
            Self::Replaced => "REPLACED",
        }
    }

    /// One letter, as the store writes it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Expired => "E",
            Self::Completed => "C",
            Self::Left => "L",
            Self::Abandoned => "A",
            Self::Replaced => "R",
        }
    }

    /// The reason of a letter.
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
    /// Whether nothing can follow.
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
