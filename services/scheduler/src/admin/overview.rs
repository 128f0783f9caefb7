//! The overview: all lines, leader and lag. Every caller gets its part of a snapshot that all
//! callers share.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use daegi_domain::{LineState, rfc3339};
use daegi_runtime::http::QueryParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::auth::Identity;
use super::overview_cache::{LineView, StoreMemory, Totals};
use super::processes::{Processes, events_example};
use super::{AdminResult, AdminState};

/// Default and maximum number of lines in a response.
pub(super) const LIMITS: (usize, usize) = (50, 1_000);

/// Filter, order and page of the lines.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OverviewQuery {
    /// Only lines whose id or name contains this.
    search: Option<String>,
    state: Option<LineState>,
    #[serde(default)]
    sort: Sort,
    offset: Option<usize>,
    limit: Option<usize>,
}

/// The order of the lines.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Sort {
    #[default]
    Waiting,
    Entered,
    Rate,
    Eta,
    Stock,
    Name,
    State,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = example())]
pub(super) struct Overview {
    /// RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    at: String,
    /// The replica that handled the call.
    replica: String,
    token_count_to_move: u32,
    tick_ms: u32,
    outbox_pending: u64,
    /// Null for a memory store.
    store_memory: Option<StoreMemory>,
    #[serde(flatten)]
    processes: Processes,
    totals: Totals,
    /// How many lines match; `lines` is one page of them.
    matching: usize,
    lines: Vec<LineView>,
}

pub(super) async fn show(
    State(admin): State<Arc<AdminState>>,
    Extension(identity): Extension<Identity>,
    QueryParams(query): QueryParams<OverviewQuery>,
) -> AdminResult<Json<Overview>> {
    let snapshot = admin.overview().await?;
    let covered = || snapshot.lines.iter().filter(|line| identity.covers(&line.item_id));
    let (mut processes, mut totals) = (snapshot.processes.clone(), snapshot.totals.clone());
    if identity.items().is_some() {
        processes.events.retain(|event| identity.covers(&event.item_id));
        totals = Totals::new(covered());
    }
    let mut lines: Vec<&LineView> = covered().filter(|line| query.matches(line)).collect();
    lines.sort_by(|one, other| query.sort.order(one, other));
    let matching = lines.len();
    let limit = query.limit.unwrap_or(LIMITS.0).min(LIMITS.1);
    let lines = lines.into_iter().skip(query.offset.unwrap_or(0)).take(limit);
    Ok(Json(Overview {
        at: rfc3339(snapshot.at),
        replica: admin.leadership.replica().to_owned(),
        token_count_to_move: snapshot.settings.token_count_to_move,
        tick_ms: snapshot.settings.tick_ms,
        outbox_pending: snapshot.outbox_pending,
        store_memory: snapshot.store_memory,
        processes,
        totals,
        matching,
        lines: lines.cloned().collect(),
    }))
}

impl OverviewQuery {
    fn matches(&self, line: &LineView) -> bool {
        let is_named = self.search.as_ref().is_none_or(|search| {
            let search = search.to_lowercase();
            let named = |name: &str| name.to_lowercase().contains(&search);
            named(line.item_id.as_str()) || named(line.item_name.as_str())
        });
        is_named && self.state.is_none_or(|state| state == line.line_state)
    }
}

impl Sort {
    /// Compares two lines: highest first, but names from A to Z; equal lines stay sorted by id.
    fn order(self, one: &LineView, other: &LineView) -> std::cmp::Ordering {
        let speed = |line: &LineView| line.admitted_per_second.unwrap_or(-1.0);
        match self {
            Self::Waiting => other.waiting_count.cmp(&one.waiting_count),
            Self::Entered => other.entered_count.cmp(&one.entered_count),
            Self::Rate => speed(other).total_cmp(&speed(one)),
            Self::Eta => other.eta_seconds.cmp(&one.eta_seconds),
            Self::Stock => other.remain_count.cmp(&one.remain_count),
            Self::Name => one.item_name.as_str().cmp(other.item_name.as_str()),
            Self::State => (one.line_state as u8).cmp(&(other.line_state as u8)),
        }
    }
}

/// One open line, for the published schema.
fn example() -> Value {
    json!({
        "at": "2026-11-20T19:30:00.000Z",
        "replica": "scheduler-1",
        "tokenCountToMove": 10,
        "tickMs": 1000,
        "outboxPending": 0,
        "storeMemory": { "usedBytes": 734_003_200, "limitBytes": 4_294_967_296_u64, "full": false },
        "schedulers": [{
            "replica": "scheduler-1",
            "leading": true,
            "epoch": 3,
            "since": "2026-11-20T19:00:00.000Z",
            "lastTickMillis": 12,
            "saidAt": "2026-11-20T19:29:59.000Z",
        }],
        "consumers": [{
            "replica": "consumer-1",
            "lag": { "item.changed": 0, "order.closed": 7 },
            "saidAt": "2026-11-20T19:29:58.000Z",
        }],
        "events": events_example(),
        "totals": {
            "lines": 1,
            "open": 1,
            "paused": 0,
            "soldOut": 0,
            "disabled": 0,
            "recovering": 0,
            "held": 0,
            "scheduled": 0,
            "lobby": 0,
            "closed": 0,
            "waiting": 4200,
            "entered": 200,
            "admittedPerSecond": 9.8,
        },
        "matching": 1,
        "lines": [{
            "itemId": "concert",
            "itemName": "Friday 8 pm",
            "lineState": "OPEN",
            "waitingCount": 4200,
            "enteredCount": 200,
            "remainCount": 500,
            "admittedPerSecond": 9.8,
            "etaSeconds": 429,
        }],
    })
}
