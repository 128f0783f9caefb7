//! An item in responses of the admin API.

use daegi_domain::draw::commitment;
use daegi_domain::line_rules::line_state;
use daegi_domain::{
    Draw, Item, ItemId, ItemName, LineState, Millis, Number, Policy, Settings, rfc3339,
    round_published_at,
};
use daegi_store::LineCounts;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{AdminResult, AdminState, store_call};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Item")]
#[schemars(example = example())]
pub(super) struct ItemView {
    item_id: ItemId,
    item_name: ItemName,
    remain_count: u32,
    waiting_queue_enabled: bool,
    paused: bool,
    version: u64,
    revision: u64,
    /// Null for items that were created by a release without this field.
    #[schemars(extend("format" = "date-time"))]
    created_at: Option<String>,
    /// When an operator or a product service changed the item last.
    #[schemars(extend("format" = "date-time"))]
    updated_at: Option<String>,
    pub(super) line_state: LineState,
    /// When the line opened, if its policy has an opening.
    #[schemars(extend("format" = "date-time"))]
    opened_at: Option<String>,
    /// The draw, if the opening has the order `draw`.
    draw: Option<DrawView>,
    policy: Policy,
}

/// The draw of a line. The secret is not shown before the line opens.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Draw")]
struct DrawView {
    state: DrawState,
    /// SHA-256 of the secret, as hexadecimal text.
    commitment: String,
    /// Null until the cohort is fixed, as the size.
    cohort_first: Option<Number>,
    cohort_size: Option<u64>,
    /// The public random number of the draw, if its opening names one.
    beacon: Option<DrawBeaconView>,
    /// The seed of the permutation, as hexadecimal text; null until it is drawn.
    seed: Option<String>,
}

/// The round of drand's quicknet that a draw uses.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DrawBeacon")]
struct DrawBeaconView {
    round: u64,
    /// When drand publishes the round.
    #[schemars(extend("format" = "date-time"))]
    published_at: String,
    /// The signature of the round, as hexadecimal text; null until it is known.
    signature: Option<String>,
}

/// Whether the order of a cohort is drawn.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum DrawState {
    /// Only the commitment is fixed.
    Committed,
    /// The line has opened.
    Drawn,
}

impl DrawView {
    fn new(draw: &Draw) -> Self {
        let beacon = draw.beacon.map(|beacon| DrawBeaconView {
            round: beacon.round,
            published_at: rfc3339(round_published_at(beacon.round)),
            signature: beacon.signature.map(hex::encode),
        });
        Self {
            state: if draw.drawn.is_some() { DrawState::Drawn } else { DrawState::Committed },
            commitment: hex::encode(commitment(&draw.reveal.0)),
            cohort_first: draw.cohort.map(|cohort| cohort.first),
            cohort_size: draw.cohort.map(|cohort| cohort.size),
            beacon,
            seed: draw.drawn.map(|drawn| hex::encode(drawn.seed)),
        }
    }
}

impl ItemView {
    /// `counts` are missing only if the item was removed between two reads.
    pub(super) fn new(
        item: Item,
        counts: Option<&LineCounts>,
        settings: &Settings,
        now: Millis,
    ) -> Self {
        let front_is_above_base = counts.is_none_or(LineCounts::front_is_above_base);
        Self {
            line_state: line_state(&item, front_is_above_base, settings, now),
            item_id: item.id,
            item_name: item.name,
            remain_count: item.stock,
            waiting_queue_enabled: item.enabled,
            paused: item.paused,
            version: item.version,
            revision: item.revision,
            created_at: item.created_at.map(rfc3339),
            updated_at: item.updated_at.map(rfc3339),
            opened_at: item.opened_at.map(rfc3339),
            draw: item.draw.as_ref().map(DrawView::new),
            policy: item.policy,
        }
    }

    /// Reads current settings and counts, because the state of a line depends on both.
    pub(super) async fn load(admin: &AdminState, item: Item) -> AdminResult<Self> {
        let id = std::slice::from_ref(&item.id);
        let reads = async { tokio::try_join!(admin.store.settings(), admin.store.counts(id)) };
        let (settings, counts) = store_call(reads).await?;
        Ok(Self::new(item, counts.first(), &settings, admin.clock.now_ms()))
    }
}

/// An item for the published schema.
pub(super) fn example() -> Value {
    json!({
        "itemId": "concert",
        "itemName": "Friday 8 pm",
        "remainCount": 500,
        "waitingQueueEnabled": true,
        "paused": false,
        "version": 7,
        "revision": 2,
        "createdAt": "2026-11-20T18:00:00.000Z",
        "updatedAt": "2026-11-20T19:00:00.000Z",
        "lineState": "OPEN",
        "openedAt": null,
        "draw": null,
        "policy": Policy::default(),
    })
}
