//! Everything at a glance: all lines, who leads, what lags. Everybody gets the part they look at, of
//! a picture that is taken for all.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::{LineState, rfc3339};
use daegi_runtime::http::QueryParams;
use serde::{Deserialize, Serialize};

use super::picture::{LineView, StoreMemory, Totals};
use super::processes::Processes;
use super::{Admin, Answer};

/// How many lines are answered where nobody says, and at most.
const LIMITS: (usize, usize) = (50, 1_000);

/// Which part of the picture somebody looks at.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Asked {
    /// Only lines whose id or name contains this.
    search: Option<String>,
    state: Option<LineState>,
    #[serde(default)]
    sort: Sort,
    offset: Option<usize>,
    limit: Option<usize>,
}

/// What comes first.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Sort {
    #[default]
    Waiting,
    Entered,
    Rate,
    Eta,
    Stock,
    Name,
    State,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Overview {
    /// RFC 3339.
    at: String,
    /// The replica that answers.
    replica: String,
    token_count_to_move: u32,
    tick_ms: u32,
    outbox_pending: u64,
    /// Null where lines live in the process.
    store_memory: Option<StoreMemory>,
    #[serde(flatten)]
    processes: Processes,
    totals: Totals,
    /// How many lines there are to look at; `lines` is the part that was asked for.
    matching: usize,
    lines: Vec<LineView>,
}

pub(super) async fn show(
    State(admin): State<Arc<Admin>>,
    QueryParams(asked): QueryParams<Asked>,
) -> Answer<Json<Overview>> {
    let picture = admin.picture().await?;
    let mut lines: Vec<&LineView> =
        picture.lines.iter().filter(|line| asked.matches(line)).collect();
    lines.sort_by(|one, other| asked.sort.order(one, other));
    let matching = lines.len();
    let limit = asked.limit.unwrap_or(LIMITS.0).min(LIMITS.1);
    let lines = lines.into_iter().skip(asked.offset.unwrap_or(0)).take(limit);
    Ok(Json(Overview {
        at: rfc3339(picture.at),
        replica: admin.leadership.replica().to_owned(),
        token_count_to_move: picture.settings.token_count_to_move,
        tick_ms: picture.settings.tick_ms,
        outbox_pending: picture.outbox_pending,
        store_memory: picture.store_memory,
        processes: picture.processes.clone(),
        totals: picture.totals.clone(),
        matching,
        lines: lines.cloned().collect(),
    }))
}

impl Asked {
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
    /// Most first, but names from A to Z; lines that are equal stay sorted by id.
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
