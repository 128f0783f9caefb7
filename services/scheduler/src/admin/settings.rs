//! What applies to every line: the quota and the length of a tick.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::Settings;
use daegi_runtime::http::JsonBody;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::audit::Operator;
use super::query::{Query, values_of};
use super::{Admin, AdminError, Answer, ask};

const QUOTA: &str = "tokenCountToMove";

/// How many people of each line a tick lets in.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Quota {
    token_count_to_move: u32,
}

/// How long a tick lasts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Tick {
    tick_ms: u32,
}

pub(super) async fn quota(State(admin): State<Arc<Admin>>) -> Answer<Json<Quota>> {
    let settings = ask(admin.store.settings()).await?;
    Ok(Json(settings.into()))
}

/// The number comes in the body or in the query; in both only if they agree.
pub(super) async fn set_quota(
    State(admin): State<Arc<Admin>>,
    operator: Operator,
    query: Query,
    body: Option<JsonBody<Quota>>,
) -> Answer<Json<Quota>> {
    let quota = one_quota(query, body.map(|JsonBody(quota)| quota))?;
    let before = ask(admin.store.settings()).await?;
    let now = ask(admin.store.set_settings(Some(quota), None)).await?;
    let change = (json!(Quota::from(before)), json!(Quota::from(now)));
    admin.note(operator, "set quota", None, change).await;
    Ok(Json(now.into()))
}

pub(super) async fn tick(State(admin): State<Arc<Admin>>) -> Answer<Json<Tick>> {
    let settings = ask(admin.store.settings()).await?;
    Ok(Json(settings.into()))
}

pub(super) async fn set_tick(
    State(admin): State<Arc<Admin>>,
    operator: Operator,
    JsonBody(Tick { tick_ms }): JsonBody<Tick>,
) -> Answer<Json<Tick>> {
    if !Settings::TICK_MS.contains(&tick_ms) {
        let (min, max) = Settings::TICK_MS.into_inner();
        let detail = format!("tickMs is {tick_ms}, allowed are {min} to {max}");
        return Err(AdminError::Invalid(detail));
    }
    let before = ask(admin.store.settings()).await?;
    let now = ask(admin.store.set_settings(None, Some(tick_ms))).await?;
    let change = (json!(Tick::from(before)), json!(Tick::from(now)));
    admin.note(operator, "set tick length", None, change).await;
    Ok(Json(now.into()))
}

fn one_quota(query: Query, body: Option<Quota>) -> Answer<u32> {
    let in_query = values_of(query, QUOTA)?;
    let in_query = in_query.iter().map(|text| parse(text));
    let in_body = body.into_iter().map(|body| Ok(body.token_count_to_move));
    let given = in_query.chain(in_body).collect::<Answer<Vec<_>>>()?;
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

/// Digits and nothing else: `parse` alone would also take a plus sign.
fn parse(text: &str) -> Answer<u32> {
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
