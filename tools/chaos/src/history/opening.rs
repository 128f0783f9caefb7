//! Openings, draws and invitation codes.

use serde::{Deserialize, Serialize};

use super::Millis;

/// The planned opening of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedOpening {
    /// When the line opens.
    pub opens_at: Millis,
    /// Whether its lobby is served in a drawn order.
    pub is_draw: bool,
}

/// One delivery of `line.opened`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedOpening {
    /// Event id, the same for every repeat.
    pub id: String,
    /// Item.
    pub item: String,
    /// Time in the event.
    pub at: Millis,
    /// The draw; `None` for an opening in order of arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<DrawRecord>,
    /// Epoch of the leader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// `ce_sequence`: commit order of all events of one item.
    pub sequence: String,
    /// When it was received.
    pub received_at: Millis,
}

/// What is public of a draw: an object of `line.opened` and of `GET …/draw`, of which this is the common part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DrawRecord {
    /// The version of the draw.
    pub version: u32,
    /// SHA-256 of the secret.
    pub commitment: String,
    /// The secret; `None` before the draw, like all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reveal: Option<String>,
    /// The first number of the cohort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohort_first: Option<u64>,
    /// How many numbers the cohort has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohort_size: Option<u64>,
    /// The Merkle root of its tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cohort_root: Option<String>,
    /// The randomness of the beacon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beacon: Option<String>,
    /// The seed of the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
}

/// A reply of `GET …/draw`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedDraw {
    /// Item.
    pub item: String,
    /// When the call began.
    pub from: Millis,
    /// When it ended.
    pub to: Millis,
    /// The record; `None` if the line has no draw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<DrawRecord>,
}

/// An invitation code that the admin API made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedCode {
    /// Item.
    pub item: String,
    /// The code.
    pub code: String,
    /// The lane that it lets its holder into.
    pub lane: u8,
    /// How many users may join with it.
    pub uses: u32,
}

/// A lane of an item, in addition to the standard lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneSetup {
    /// Name.
    pub name: String,
    /// The share of the rate in percent; `None` for a lane that is served before all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}
