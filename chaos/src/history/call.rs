//! What a person or an order service asked, and heard.

use serde::{Deserialize, Serialize};

use super::Millis;

/// One call, from its beginning to its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// What was asked.
    pub op: Op,
    /// Who asked.
    pub user: String,
    /// For which item.
    pub item: String,
    /// With which number, if one was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// When it was asked.
    pub from: Millis,
    /// When it was answered, or given up.
    pub to: Millis,
    /// What came of it.
    pub outcome: Outcome,
}

/// What can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Op {
    /// A place.
    Join,
    /// Where a ticket stands.
    Poll,
    /// To be taken out.
    Leave,
    /// An order service ends an entry over HTTP.
    Complete,
    /// An order service ends an entry over Kafka: confirmed by the broker, not yet in effect.
    Order,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It was done, and this is what was said.
    Ok(Seen),
    /// It was refused, and certainly has no effect.
    Refused {
        /// Of HTTP.
        status: u16,
        /// Of the problem.
        code: String,
    },
    /// 503, and when to ask again. Nobody knows whether it has an effect.
    Later {
        /// Of the problem.
        code: String,
        /// `Retry-After`, in seconds; there must be one.
        after: Option<u64>,
    },
    /// An answer that nobody may get: another 5xx, or one that cannot be read.
    Broken {
        /// Of HTTP.
        status: u16,
        /// What was said.
        what: String,
    },
    /// Nobody knows whether it has an effect.
    Unknown(String),
}

/// What an answer said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The ticket's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// Where the ticket stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The place in the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Whether a completion has released an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<bool>,
}

impl Outcome {
    /// Whether nobody knows what came of it.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        matches!(self, Self::Later { .. } | Self::Broken { .. } | Self::Unknown(_))
    }
}

impl Call {
    /// What was said, if it was done.
    #[must_use]
    pub fn seen(&self) -> Option<&Seen> {
        match &self.outcome {
            Outcome::Ok(seen) => Some(seen),
            _ => None,
        }
    }

    /// The number that was given or asked about.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.seen().and_then(|seen| seen.number).or(self.number)
    }

    /// Whether it was said that the person may enter.
    #[must_use]
    pub fn says(&self, status: &str) -> bool {
        self.seen().is_some_and(|seen| seen.status.as_deref() == Some(status))
    }
}
