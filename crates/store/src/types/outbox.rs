use daegi_domain::{ItemId, TicketEvent};

use super::Epoch;

/// Events of one item that one step wrote, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxBatch {
    /// The id to acknowledge.
    pub id: String,
    /// The item.
    pub item: ItemId,
    /// The term of a leader's step; `None` for steps of users and order services.
    pub epoch: Option<Epoch>,
    /// The events.
    pub events: Vec<TicketEvent>,
}
