//! Calls of users and order services, with their outcomes.

use serde::{Deserialize, Serialize};

use super::{Millis, TicketNumber};

/// One call with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The operation.
    pub op: Op,
    /// The user.
    pub user: String,
    /// The item.
    pub item: String,
    /// The number of the ticket, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<TicketNumber>,
    /// The invitation code of a join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// When the call began.
    pub from: Millis,
    /// When the call ended or timed out.
    pub to: Millis,
    /// The outcome.
    pub outcome: Outcome,
}

/// The operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Op {
    /// Join the line.
    Join,
    /// Read the status of a ticket.
    Poll,
    /// Leave the line or give the entry back.
    Leave,
    /// An order service completes an entry over HTTP.
    Complete,
    /// An order service completes an entry over Kafka: confirmed by the broker, not yet applied.
    Order,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// A success, with the fields of the reply.
    Ok(ReplyFields),
    /// A 4xx response: the call had no effect.
    Refused {
        /// HTTP status.
        status: u16,
        /// Problem code.
        code: String,
    },
    /// A 503 response: the effect is unknown.
    Unavailable {
        /// Problem code.
        code: String,
        /// `Retry-After` in seconds; required.
        after: Option<u64>,
    },
    /// An invalid response: another 5xx, or an unreadable body.
    Malformed {
        /// HTTP status.
        status: u16,
        /// Code or beginning of the body.
        what: String,
    },
    /// No response: the effect is unknown.
    Unknown(String),
}

/// The fields of a reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplyFields {
    /// Number of the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<TicketNumber>,
    /// Status of the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Position in the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Rank in the draw, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort_rank: Option<u64>,
    /// Whether a completion has ended an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<bool>,
}

impl Outcome {
    /// Whether the effect of the call is unknown.
    #[must_use]
    pub fn has_unknown_effect(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Malformed { .. } | Self::Unknown(_))
    }
}

impl Call {
    /// The fields of the reply, if the call succeeded.
    #[must_use]
    pub fn reply(&self) -> Option<&ReplyFields> {
        match &self.outcome {
            Outcome::Ok(reply) => Some(reply),
            _ => None,
        }
    }

    /// Whether the invitation code was refused.
    #[must_use]
    pub fn is_refused_code(&self) -> bool {
        matches!(&self.outcome, Outcome::Refused { status: 403, code } if code == "INVALID_CODE")
    }

    /// The number in the reply, or of the call.
    #[must_use]
    pub fn number(&self) -> Option<TicketNumber> {
        self.reply().and_then(|reply| reply.number).or(self.number)
    }

    /// Whether the reply has this status.
    #[must_use]
    pub fn says(&self, status: &str) -> bool {
        self.reply().is_some_and(|reply| reply.status.as_deref() == Some(status))
    }
}
