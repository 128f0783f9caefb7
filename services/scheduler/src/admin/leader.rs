//! Who leads, whichever replica is asked, and how far the outbox lags.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::rfc3339;
use daegi_store::Reign;
use serde::Serialize;

use super::{Admin, Answer, ask};
use crate::leader::outbox_pending;
use crate::leadership::Term;

/// Leader, epoch, since and term length are null while nobody leads.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaderView {
    /// The replica that answers.
    replica: String,
    leading: bool,
    /// The replica that leads.
    leader: Option<String>,
    epoch: Option<u64>,
    /// RFC 3339.
    since: Option<String>,
    /// How long the leader's term has lasted.
    term_seconds: Option<u64>,
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
    let reign = match standing.term {
        Some(term) => Some(own(&admin, term)),
        None => ask(admin.store.leases().reign()).await?,
    };
    let lasted = |reign: &Reign| admin.clock.now_ms().saturating_sub(reign.since) / 1000;
    let millis = |took: std::time::Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    Ok(Json(LeaderView {
        replica: admin.leadership.replica().to_owned(),
        leading: standing.term.is_some(),
        epoch: reign.as_ref().map(|reign| reign.epoch.0),
        since: reign.as_ref().map(|reign| rfc3339(reign.since)),
        term_seconds: reign.as_ref().map(lasted),
        leader: reign.map(|reign| reign.leader),
        hand_overs: standing.hand_overs,
        stale_refusals: standing.stale_refusals,
        last_tick_millis: standing.last_tick.map(millis),
        outbox_pending,
        tick_ms: settings.tick_ms,
        token_count_to_move: settings.token_count_to_move,
    }))
}

/// A leader knows what it has not announced yet.
fn own(admin: &Admin, term: Term) -> Reign {
    let leader = admin.leadership.replica().to_owned();
    Reign { leader, epoch: term.epoch, since: term.since }
}
