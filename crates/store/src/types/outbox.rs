use daegi_domain::{ItemId, Lane, LaneName, LineEvent, TicketEvent};

use super::Epoch;

/// Events of one item that one step wrote, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxBatch {
    /// The id to acknowledge.
    pub id: String,
    /// The item.
    pub item: ItemId,
    /// The lane of the tickets; the standard lane for an event of the line.
    pub lane: Lane,
    /// The name of the lane when the events were written; `None` for the standard lane.
    pub lane_name: Option<LaneName>,
    /// The term of a leader's step; `None` for steps of users and order services.
    pub epoch: Option<Epoch>,
    /// The events of tickets.
    pub events: Vec<TicketEvent>,
    /// The event of the line itself. Such a batch has no events of tickets.
    pub line: Option<LineEvent>,
}

impl OutboxBatch {
    /// Returns how many events the batch holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len() + usize::from(self.line.is_some())
    }

    /// Returns whether the batch holds no event, which no step writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
