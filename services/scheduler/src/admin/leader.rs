//! The current leader, from any replica, and the size of the outbox.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::rfc3339;
use daegi_store::CurrentLeader;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::{AdminResult, AdminState, store_call};
use crate::leader::outbox_pending;
use crate::leadership::Term;

/// Leader, epoch, since and term length are null while no replica leads.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Leader")]
#[schemars(example = json!({
    "replica": "scheduler-1",
    "leading": true,
    "leader": "scheduler-1",
    "epoch": 3,
    "since": "2026-11-20T19:00:00.000Z",
    "termSeconds": 1800,
    "handOvers": 0,
    "staleRefusals": 0,
    "lastTickMillis": 12,
    "outboxPending": 0,
    "tickMs": 1000,
    "tokenCountToMove": 10,
}))]
pub(super) struct LeaderView {
    /// The replica that handled the call.
    replica: String,
    leading: bool,
    /// The replica that leads.
    leader: Option<String>,
    epoch: Option<u64>,
    /// RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    since: Option<String>,
    /// How long the leader's term has lasted.
    term_seconds: Option<u64>,
    /// Terms of this replica that have ended.
    hand_overs: u64,
    /// How often the store rejected the epoch of this replica.
    stale_refusals: u64,
    /// How long this replica's latest tick took; null if it never led.
    last_tick_millis: Option<u64>,
    /// Events of all partitions that are not published yet.
    outbox_pending: u64,
    tick_ms: u32,
    token_count_to_move: u32,
}

pub(super) async fn show(State(admin): State<Arc<AdminState>>) -> AdminResult<Json<LeaderView>> {
    let settings = store_call(admin.store.settings()).await?;
    let outbox_pending = store_call(outbox_pending(&admin.store)).await?;
    let status = admin.leadership.status();
    let current = match status.term {
        Some(term) => Some(own_term(&admin, term)),
        None => store_call(admin.store.lock().current_leader()).await?,
    };
    let lasted =
        |current: &CurrentLeader| admin.clock.now_ms().saturating_sub(current.since) / 1000;
    let millis = |took: std::time::Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Ok(Json(LeaderView {
        replica: admin.leadership.replica().to_owned(),
        leading: status.term.is_some(),
        epoch: current.as_ref().map(|current| current.epoch.0),
        since: current.as_ref().map(|current| rfc3339(current.since)),
        term_seconds: current.as_ref().map(lasted),
        leader: current.map(|current| current.leader),
        hand_overs: status.hand_overs,
        stale_refusals: status.stale_refusals,
        last_tick_millis: status.last_tick.map(millis),
        outbox_pending,
        tick_ms: settings.tick_ms,
        token_count_to_move: settings.token_count_to_move,
    }))
}

/// Returns the term of this replica, which may not be in the store yet.
fn own_term(admin: &AdminState, term: Term) -> CurrentLeader {
    let leader = admin.leadership.replica().to_owned();
    CurrentLeader { leader, epoch: term.epoch, since: term.since }
}
