//! Events of a line: it opened, it closed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::event_id;
use crate::draw::{DRAW_VERSION, commitment};
use crate::{Draw, ItemId, Millis, Number, Order, Topic, rfc3339};

/// An event of a line, as the outbox stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "one per line and opening")]
pub enum LineEvent {
    /// The leader opened the line.
    Opened {
        /// When it opened.
        at: Millis,
        /// The draw, if the opening has the order `draw`.
        draw: Option<Draw>,
    },
    /// The line closed.
    Closed {
        /// When the leader recorded it.
        at: Millis,
    },
}

/// The body of `line.opened`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineOpened {
    /// Event id. A repeat of this event has the same id.
    pub event_id: Uuid,
    /// The item of the line.
    pub item_id: ItemId,
    /// In which order the users of the lobby are served.
    pub order: Order,
    /// What anybody needs to recompute the draw; null for the order `arrival`.
    pub draw: Option<PublishedDraw>,
    /// When the line opened, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub opened_at: String,
}

/// The draw of a line that has opened. Hashes and the seed are hexadecimal text of 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishedDraw {
    /// The version of the algorithm.
    pub version: u32,
    /// SHA-256 of `reveal`, public since the draw was planned.
    pub commitment: String,
    /// The secret.
    pub reveal: String,
    /// The first number of the cohort.
    pub cohort_first: Number,
    /// How many numbers the cohort has.
    pub cohort_size: u64,
    /// The Merkle root of the cohort's tokens.
    pub cohort_root: String,
    /// The randomness of the beacon, if there is one.
    pub beacon: Option<String>,
    /// The round of drand's quicknet that gives the beacon, if there is one.
    #[serde(default)]
    pub beacon_round: Option<u64>,
    /// The signature of that round, whose SHA-256 is the beacon; hexadecimal text of 96 characters.
    #[serde(default)]
    pub beacon_signature: Option<String>,
    /// The seed of the permutation.
    pub seed: String,
}

/// The body of `line.closed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineClosed {
    /// Event id. A repeat of this event has the same id.
    pub event_id: Uuid,
    /// The item of the line.
    pub item_id: ItemId,
    /// When the line closed, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub closed_at: String,
}

impl LineEvent {
    /// Returns an id derived from the line and the time, so that a repeated event has the same id.
    pub fn id(&self, item: &ItemId) -> Uuid {
        match self {
            Self::Opened { at, .. } => event_id(Topic::LineOpened, item, *at),
            Self::Closed { at } => event_id(Topic::LineClosed, item, *at),
        }
    }
}

impl PublishedDraw {
    /// Returns what is published of a draw; `None` before it is drawn.
    pub fn new(draw: &Draw) -> Option<Self> {
        let (cohort, drawn) = draw.cohort.zip(draw.drawn)?;
        Some(Self {
            version: DRAW_VERSION,
            commitment: hex::encode(commitment(&draw.reveal.0)),
            reveal: hex::encode(draw.reveal.0),
            cohort_first: cohort.first,
            cohort_size: cohort.size,
            cohort_root: hex::encode(drawn.root),
            beacon: drawn.beacon.map(hex::encode),
            beacon_round: draw.beacon.map(|beacon| beacon.round),
            beacon_signature: draw.beacon.and_then(|beacon| beacon.signature).map(hex::encode),
            seed: hex::encode(drawn.seed),
        })
    }
}

impl LineOpened {
    /// Returns the body for a line that opened.
    pub fn new(item: ItemId, id: Uuid, at: Millis, draw: Option<&Draw>) -> Self {
        let draw = draw.and_then(PublishedDraw::new);
        let order = if draw.is_some() { Order::Draw } else { Order::Arrival };
        Self { event_id: id, item_id: item, order, draw, opened_at: rfc3339(at) }
    }
}

impl LineClosed {
    /// Returns the body for a line that closed.
    pub fn new(item: ItemId, id: Uuid, at: Millis) -> Self {
        Self { event_id: id, item_id: item, closed_at: rfc3339(at) }
    }
}
