//! Makes invitation codes for a lane.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::{Invitation, ItemId, LaneName, Millis, lane, parse_rfc3339, rfc3339};
use daegi_runtime::http::{JsonBody, PathParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::audit::Operator;
use super::{AdminError, AdminResult, AdminState, store_call};

/// How many codes one call makes: a response of at most 400 KB.
const COUNTS: RangeInclusive<u32> = 1..=10_000;

const USES: RangeInclusive<u32> = 1..=Invitation::MAX_USES;

/// The body of a call that makes codes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({
    "lane": "members", "count": 2, "usesEach": 1, "expiresAt": "2026-11-20T21:00:00+09:00",
}))]
pub(super) struct NewInvitations {
    /// The name of a lane of the item's policy.
    lane: LaneName,
    /// How many codes to make.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10_000))]
    count: u32,
    /// How many users may join with each code.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10_000))]
    uses_each: u32,
    /// When the codes expire, RFC 3339: at most 400 days ahead.
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
}

/// Codes of one lane.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "lane": "members", "usesEach": 1, "expiresAt": "2026-11-20T12:00:00.000Z",
    "codes": ["05NFEV21-000H4D2P-F2D4GRYB-R83AF0AC", "05NFEV21-000H4D2P-F34C1M5X-6V0KQZ7T"],
}))]
pub(super) struct Invitations {
    lane: LaneName,
    uses_each: u32,
    /// In whole seconds.
    #[schemars(extend("format" = "date-time"))]
    expires_at: String,
    codes: Vec<String>,
}

/// `POST …/invitations`. The audit log records how many codes were made, and none of them.
pub(super) async fn create(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    PathParams(id): PathParams<ItemId>,
    JsonBody(new): JsonBody<NewInvitations>,
) -> AdminResult<Json<Invitations>> {
    check("count", new.count, &COUNTS)?;
    check("usesEach", new.uses_each, &USES)?;
    let expires_at = expiry(&new.expires_at, admin.clock.now_ms())?;
    let item = store_call(admin.store.item(&id)).await?;
    let item = item.ok_or_else(|| AdminError::ItemNotFound(id.clone()))?;
    let lane = lane::find(&item.policy.lanes, &new.lane);
    let lane = lane.ok_or_else(|| AdminError::LaneNotFound(id.clone(), new.lane.clone()))?;
    // Ids that follow a random one are distinct within a call, and rarely meet those of another call.
    let first = getrandom::u64().map_err(AdminError::NoRandomness)?;
    let code = |offset: u32| {
        let invitation = Invitation {
            id: Invitation::id_after(first, offset.into()),
            uses: new.uses_each,
            expires_at,
        };
        admin.ticket_keys.invitation_code(&id, (lane, &new.lane), &invitation)
    };
    let codes = (0..new.count).map(code).collect();
    let made = Invitations {
        lane: new.lane,
        uses_each: new.uses_each,
        expires_at: rfc3339(expires_at),
        codes,
    };
    let recorded = json!({
        "lane": made.lane, "count": new.count, "usesEach": made.uses_each,
        "expiresAt": made.expires_at,
    });
    admin.record_audit(operator, "create invitations", Some(&id), (Value::Null, recorded)).await;
    Ok(Json(made))
}

fn check(field: &str, value: u32, allowed: &RangeInclusive<u32>) -> AdminResult<()> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let (min, max) = (allowed.start(), allowed.end());
    Err(AdminError::Invalid(format!("{field} is {value}, allowed are {min} to {max}")))
}

/// Returns the time in whole seconds, as codes carry it.
fn expiry(text: &str, now: Millis) -> AdminResult<Millis> {
    let invalid = |reason: &str| AdminError::Invalid(format!("expiresAt {reason}"));
    let at = parse_rfc3339(text).map_err(|error| invalid(&format!("is invalid: {error}")))?;
    let at = at - at % 1000;
    if at <= now {
        return Err(invalid("is in the past"));
    }
    if at - now > Invitation::MAX_AHEAD_MS {
        return Err(invalid("is more than 400 days ahead"));
    }
    Ok(at)
}

fn one() -> u32 {
    1
}
