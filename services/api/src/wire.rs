//! The JSON of the contract: what goes over the wire, and the source of the published schemas.

mod entry;
mod page;
mod ticket;

use daegi_domain::{ItemId, ItemName, LineState, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use entry::{Completed, Reason, TokenOrPass, Verdict};
pub(crate) use page::{PageTexts, StreamQuery};
pub(crate) use ticket::Ticket;

/// Who wants to join. May be left out where the `user-id` header says it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Join {
    /// The person. Must agree with the header, where both are given.
    #[serde(default)]
    pub(crate) user_id: Option<UserId>,
}

/// How long a poll may wait for news.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wait {
    /// In milliseconds.
    #[serde(default)]
    pub(crate) wait_ms: Option<u64>,
}

/// A line, for everybody.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    /// The item.
    pub(crate) item_id: ItemId,
    /// Its name, for people.
    pub(crate) item_name: ItemName,
    /// Whether the line moves, and if not, why.
    pub(crate) line_state: LineState,
    /// How many wait, those who came back after missing their turn included.
    pub(crate) waiting_count: u64,
    /// How many are inside.
    pub(crate) entered_count: u64,
    /// How many left the front of the line per second, over the last half minute.
    pub(crate) admitted_per_second: f64,
}

impl Wait {
    /// The longest wait.
    pub(crate) const MAX_MS: u64 = 30_000;
}
