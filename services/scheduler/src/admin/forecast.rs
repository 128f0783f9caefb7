//! What a change of rate or capacity would do to a line, before it is made.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::{Eta, ItemId, Lane, WaitModel, rfc3339};
use daegi_runtime::http::{JsonBody, PathParams};
use daegi_store::ChangeCursor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{AdminError, AdminResult, AdminState, store_call};

/// The change. A field that is missing stays as it is; null has the meaning that it has in a policy.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(example = json!({ "tokensPerTick": 20, "maxActive": 400 }))]
pub(super) struct Change {
    /// Admissions per tick.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<u32>")]
    tokens_per_tick: Option<Option<u32>>,
    /// The maximum number of entries.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "Option<u32>")]
    max_active: Option<Option<u32>>,
}

/// What would happen to the tickets that wait now in the standard lane, if no further one joined.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "waiting": 4200, "clearsInSeconds": { "p10": 390, "p50": 421, "p90": 463 },
    "clearsAt": "2026-11-20T19:07:01.000Z", "withoutTurn": 380,
}))]
pub(super) struct LineForecast {
    /// Tickets that wait now.
    waiting: u64,
    /// When the last of them that the stock serves is admitted; null if no ticket is admitted.
    clears_in_seconds: Option<Eta>,
    /// The same as a time, for the median.
    #[schemars(extend("format" = "date-time"))]
    clears_at: Option<String>,
    /// Tickets for which the stock will probably not be enough.
    without_turn: u64,
}

fn given<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// `POST …/forecast`: changes nothing.
pub(super) async fn show(
    State(admin): State<Arc<AdminState>>,
    PathParams(id): PathParams<ItemId>,
    JsonBody(change): JsonBody<Change>,
) -> AdminResult<Json<LineForecast>> {
    let at = admin.clock.now_ms();
    let snapshot = admin.store.snapshot(&id, Lane::STANDARD, ChangeCursor::default());
    let reads = async { tokio::try_join!(snapshot, admin.store.settings()) };
    let (line, settings) = store_call(reads).await?;
    let mut line = line.ok_or(AdminError::ItemNotFound(id))?;
    let policy = &mut line.item.policy;
    policy.tokens_per_tick = change.tokens_per_tick.unwrap_or(policy.tokens_per_tick);
    policy.max_active = change.max_active.unwrap_or(policy.max_active);
    policy.check()?;
    let waiting = line.waiting + line.returning;
    let model = WaitModel::new(&line.facts(&settings), at);
    let served = model.map_or(waiting, |model| model.served_of(waiting));
    let clears = model.filter(|_| line.item.stock > 0).and_then(|model| model.eta(served));
    Ok(Json(LineForecast {
        waiting,
        clears_in_seconds: clears,
        clears_at: clears.map(|eta| rfc3339(at + eta.p50 * 1_000)),
        without_turn: waiting - served,
    }))
}
