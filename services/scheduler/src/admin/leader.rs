//! Who leads, as far as this replica knows, and how far the outbox lags.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::rfc3339;
use serde::Serialize;

use super::{Admin, Answer, ask};
use crate::leader::outbox_pending;

/// Epoch and since are null on a standby, which only knows that it does not lead.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaderView {
    /// The replica that answers.
    replica: String,
    leading: bool,
    epoch: Option<u64>,
    /// RFC 3339.
    since: Option<String>,
    /// Terms of this replica that have ended.
    hand_overs: u64,
    /// How often the store refused this replica because another one leads.
    stale_refusals: u64,
    /// How long this replica's latest tick took; null if it never led.
    last_tick_millis: Option<u64>,
    /// Events of all partitions that are not published yet.
    outbox_pending: u64,
    tick_ms: u32,
    token_count_to_move: u32,
}

pub(super) async fn show(State(admin): State<Arc<Admin>>) -> Answer<Json<LeaderView>> {
    let settings = ask(admin.store.settings()).await?;
    let outbox_pending = ask(outbox_pending(&admin.store)).await?;
    let standing = admin.leadership.standing();
    let millis = |took: std::time::Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Ok(Json(LeaderView {
        replica: admin.leadership.replica().to_owned(),
        leading: standing.term.is_some(),
        epoch: standing.term.map(|term| term.epoch.0),
        since: standing.term.map(|term| rfc3339(term.since)),
        hand_overs: standing.hand_overs,
        stale_refusals: standing.stale_refusals,
        last_tick_millis: standing.last_tick.map(millis),
        outbox_pending,
        tick_ms: settings.tick_ms,
        token_count_to_move: settings.token_count_to_move,
    }))
}
