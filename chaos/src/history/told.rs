//! An event as the order service heard it.

use serde::{Deserialize, Serialize};

use super::Millis;

/// An event as the order service heard it; a repeat is another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// What happened.
    pub event: Kind,
    /// The same for every repeat.
    pub id: String,
    /// The line.
    pub item: String,
    /// Whose ticket.
    pub user: String,
    /// Its number.
    pub number: u64,
    /// When it happened.
    pub at: Millis,
    /// Until when an entry lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Millis>,
    /// How a ticket ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// In whose term; none where no leader did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Sorts the events of one item over both topics.
    pub sequence: String,
    /// Where it was found.
    pub partition: i32,
    /// Its place there.
    pub offset: i64,
    /// When it was heard.
    pub heard: Millis,
}

/// What happened to a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// It was let in.
    Activated,
    /// It ended.
    Closed,
}

impl Told {
    /// When the step was taken, by the store's clock. The event's own time was read before.
    #[must_use]
    pub fn taken(&self) -> Millis {
        let time = self.sequence.split('-').next().unwrap_or_default();
        time.parse().unwrap_or(self.at)
    }

    /// Whether two are the same event, heard twice.
    #[must_use]
    pub fn repeats(&self, other: &Self) -> bool {
        let told = |one: &Self| Self { partition: 0, offset: 0, heard: 0, ..one.clone() };
        told(self) == told(other)
    }
}
