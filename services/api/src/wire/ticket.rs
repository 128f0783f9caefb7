use daegi_domain::{Eta, ItemId, LineState, Status, UserId};
use schemars::JsonSchema;
use serde::Serialize;

/// A place in a line and what there is to know about it now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ticket {
    /// The item people wait for.
    pub(crate) item_id: ItemId,
    /// Who holds the ticket.
    pub(crate) user_id: UserId,
    /// The ticket's text: keep it, it is the only proof of the place.
    pub(crate) token: String,
    /// Where the ticket stands.
    pub(crate) status: Status,
    /// The place in the line, 1 for the first; 0 for everybody who does not wait.
    pub(crate) position: u64,
    /// How many wait in the line.
    pub(crate) waiting_count: u64,
    /// Whether the line moves, and if not, why.
    pub(crate) line_state: LineState,
    /// When the turn will probably come; null while unknown, while the line stands still, and
    /// for everybody who does not wait.
    pub(crate) eta_seconds: Option<Eta>,
    /// When to ask again; 0 for everybody who does not wait.
    pub(crate) poll_after_ms: u64,
    /// The proof of entry, a JWT, once it is the person's turn.
    pub(crate) pass: Option<String>,
    /// Until when the entry lasts, as RFC 3339.
    pub(crate) pass_expires_at: Option<String>,
    /// Where to go now, if the item has such an address.
    pub(crate) entry_url: Option<String>,
}
