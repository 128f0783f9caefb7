//! Events received from Kafka.

use serde::{Deserialize, Serialize};

use super::{Millis, TicketNumber};

/// One delivery of an event; a repeat is another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObservedEvent {
    /// Kind.
    pub event: EventKind,
    /// Event id, the same for every repeat.
    pub id: String,
    /// Item.
    pub item: String,
    /// User.
    pub user: String,
    /// Number.
    pub number: TicketNumber,
    /// Time in the event.
    pub at: Millis,
    /// Expiry of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Millis>,
    /// End reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Epoch of the leader; `None` for events of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// `ce_sequence`: commit order of the events of one item over both topics.
    pub sequence: String,
    /// Topic partition.
    pub partition: i32,
    /// Offset.
    pub offset: i64,
    /// When it was received.
    pub received_at: Millis,
}

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventKind {
    /// An admission.
    Activated,
    /// An end.
    Closed,
}

/// Commit time in a `ce_sequence`.
pub(crate) fn committed_at(sequence: &str) -> Option<Millis> {
    sequence.split('-').next()?.parse().ok()
}

impl ObservedEvent {
    /// Commit time by the clock of the store. The time in the event was read before the commit.
    #[must_use]
    pub fn committed_at(&self) -> Millis {
        committed_at(&self.sequence).unwrap_or(self.at)
    }

    /// Whether two deliveries are the same event.
    #[must_use]
    pub fn repeats(&self, other: &Self) -> bool {
        let content = |one: &Self| Self { partition: 0, offset: 0, received_at: 0, ..one.clone() };
        content(self) == content(other)
    }
}
