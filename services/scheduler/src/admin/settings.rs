//! The settings of all lines: quota and tick length.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::Settings;
use daegi_runtime::http::JsonBody;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::audit::Operator;
use super::requests::{QueryPairs, query_values};
use super::{AdminError, AdminResult, AdminState, store_call};

const QUOTA: &str = "tokenCountToMove";

/// How many tickets of each line a tick admits.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ QUOTA: 10 }))]
pub(super) struct Quota {
    #[schemars(range(max = 1_000_000))]
    token_count_to_move: u32,
}

/// The length of a tick.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = json!({ "tickMs": 1000 }))]
pub(super) struct Tick {
    #[schemars(range(min = 50, max = 60_000))]
    tick_ms: u32,
}

pub(super) async fn quota(State(admin): State<Arc<AdminState>>) -> AdminResult<Json<Quota>> {
    let settings = store_call(admin.store.settings()).await?;
    Ok(Json(settings.into()))
}

/// Sets the quota. It is in the body or in the query; in both only if they agree.
pub(super) async fn set_quota(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    query: QueryPairs,
    body: Option<JsonBody<Quota>>,
) -> AdminResult<Json<Quota>> {
    let quota = requested_quota(query, body.map(|JsonBody(quota)| quota))?;
    let before = store_call(admin.store.settings()).await?;
    let now = store_call(admin.store.set_settings(Some(quota), None)).await?;
    let change = (json!(Quota::from(before)), json!(Quota::from(now)));
    admin.record_audit(operator, "set quota", None, change).await;
    Ok(Json(now.into()))
}

pub(super) async fn tick(State(admin): State<Arc<AdminState>>) -> AdminResult<Json<Tick>> {
    let settings = store_call(admin.store.settings()).await?;
    Ok(Json(settings.into()))
}

pub(super) async fn set_tick(
    State(admin): State<Arc<AdminState>>,
    operator: Operator,
    JsonBody(Tick { tick_ms }): JsonBody<Tick>,
) -> AdminResult<Json<Tick>> {
    if !Settings::TICK_MS.contains(&tick_ms) {
        let (min, max) = Settings::TICK_MS.into_inner();
        let detail = format!("tickMs is {tick_ms}, allowed are {min} to {max}");
        return Err(AdminError::Invalid(detail));
    }
    let before = store_call(admin.store.settings()).await?;
    let now = store_call(admin.store.set_settings(None, Some(tick_ms))).await?;
    let change = (json!(Tick::from(before)), json!(Tick::from(now)));
    admin.record_audit(operator, "set tick length", None, change).await;
    Ok(Json(now.into()))
}

fn requested_quota(query: QueryPairs, body: Option<Quota>) -> AdminResult<u32> {
    let in_query = query_values(query, QUOTA)?;
    let in_query = in_query.iter().map(|text| parse(text));
    let in_body = body.into_iter().map(|body| Ok(body.token_count_to_move));
    let given = in_query.chain(in_body).collect::<AdminResult<Vec<_>>>()?;
    let (Some(&first), max) = (given.first(), Settings::MAX_TOKEN_COUNT) else {
        return Err(AdminError::Invalid(format!("{QUOTA} is missing")));
    };
    if given.iter().any(|other| *other != first) {
        let detail = format!("{QUOTA} is given more than once, with different values");
        return Err(AdminError::Invalid(detail));
    }
    if first > max {
        let detail = format!("{QUOTA} is {first}, allowed are 0 to {max}");
        return Err(AdminError::Invalid(detail));
    }
    Ok(first)
}

/// Accepts digits only: `parse` alone would also accept a plus sign.
fn parse(text: &str) -> AdminResult<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.ok_or_else(|| {
        let max = Settings::MAX_TOKEN_COUNT;
        AdminError::Invalid(format!("{QUOTA} must be a whole number from 0 to {max}"))
    })
}

impl From<Settings> for Quota {
    fn from(settings: Settings) -> Self {
        Self { token_count_to_move: settings.token_count_to_move }
    }
}

impl From<Settings> for Tick {
    fn from(settings: Settings) -> Self {
        Self { tick_ms: settings.tick_ms }
    }
}
