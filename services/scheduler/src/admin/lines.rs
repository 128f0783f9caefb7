//! One line: current figures and history.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::{ItemId, LaneName, LanePolicy, Millis, SignalCounts, lane, rfc3339};
use daegi_runtime::http::PathParams;
use daegi_store::LaneCounts;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::overview_cache::eta;
use super::pace::PaceView;
use super::processes::{EventView, Processes, events_example};
use super::view::{self, ItemView};
use super::{AdminError, AdminResult, AdminState, store_call};
use crate::monitor::{EstimateTotals, SAMPLE_MS, Sample};

/// The current figures of a line.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "at": "2026-11-20T19:30:00.000Z",
    "item": view::example(),
    "people": {
        "waiting": 4200,
        "returning": 3,
        "missed": 12,
        "entered": 200,
        "frontier": 15_400,
        "tail": 19_900,
        "joined": 19_900,
        "admitted": 15_300,
        "completed": 14_000,
        "expired": 900,
        "left": 340,
        "abandoned": 248,
    },
    "admittedPerSecond": 9.8,
    "pace": PaceView::example(),
    "etaSeconds": 429,
    "signals": {
        "automated": 812, "source": 1004, "headers": 640, "earlyPolls": 95, "noPage": 871, "honeypot": 12,
        "uncounted": 0,
    },
    "estimates": { "within": 46, "earlier": 3, "later": 1 },
    "events": events_example(),
    "lanes": [
        lane_example("standard", 80, 4000),
        lane_example("members", 20, 200),
    ],
}))]
pub(super) struct LineDetail {
    /// RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    at: String,
    item: ItemView,
    people: LineFigures,
    /// Over the last 30 s; null until this replica has samples.
    admitted_per_second: Option<f64>,
    /// The state of an adaptive pace; null for a fixed one, and before the leader's first step.
    pace: Option<PaceView>,
    /// Until a ticket that joins now is admitted; null if unknown.
    eta_seconds: Option<u64>,
    /// How many tickets have signals of a program. Nothing follows from them but this figure.
    signals: SignalCounts,
    /// How many sampled tickets were admitted within the range that they were shown at the join, since this replica
    /// samples the line; null without samples.
    estimates: Option<EstimateView>,
    /// The latest events of this line that the leader published, newest first.
    events: Vec<EventView>,
    /// The lanes, the standard lane first; empty if the item has no others. `people` has the sums, its
    /// `frontier` and `tail` are of the standard lane.
    lanes: Vec<LaneFigures>,
}

/// How well estimates of the wait held.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EstimateView {
    within: u64,
    earlier: u64,
    later: u64,
}

impl From<EstimateTotals> for EstimateView {
    fn from(EstimateTotals { within, earlier, later }: EstimateTotals) -> Self {
        Self { within, earlier, later }
    }
}

/// A lane and its current tickets by state.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LaneFigures {
    /// `standard` for users without an invitation.
    name: String,
    /// The share of the rate in percent while tickets wait in all lanes; 0 for a lane that is served first.
    weight: u32,
    /// Whether the lane is served before all lanes with a weight.
    first: bool,
    waiting: u64,
    returning: u64,
    missed: u64,
    entered: u64,
    /// Since the line began.
    admitted: u64,
}

/// Current tickets by state, and totals since the line began.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LineFigures {
    waiting: u64,
    /// Those of them that missed their turn, returned, and are served first.
    returning: u64,
    /// Absent at their turn; may return.
    missed: u64,
    entered: u64,
    /// Numbers that the front has passed since the line began.
    frontier: u64,
    /// Numbers that were issued since the line began.
    tail: u64,
    joined: u64,
    admitted: u64,
    completed: u64,
    expired: u64,
    left: u64,
    abandoned: u64,
}

/// A line over time: one list per figure, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "replica": "scheduler-1",
    "sampleMs": SAMPLE_MS,
    "at": [1_795_203_000_000_u64, 1_795_203_000_000 + SAMPLE_MS],
    "waiting": [4216, 4200],
    "entered": [199, 200],
    "frontier": [15_380, 15_400],
    "tail": [19_896, 19_900],
    "joined": [19_896, 19_900],
    "admitted": [15_280, 15_300],
    "completed": [13_982, 14_000],
    "expired": [900, 900],
    "left": [339, 340],
    "abandoned": [248, 248],
}))]
pub(super) struct LineHistory {
    /// The replica whose samples these are; they are lost with its process.
    replica: String,
    sample_ms: Millis,
    /// Unix milliseconds.
    at: Vec<Millis>,
    waiting: Vec<u32>,
    entered: Vec<u32>,
    frontier: Vec<u32>,
    tail: Vec<u32>,
    joined: Vec<u32>,
    admitted: Vec<u32>,
    completed: Vec<u32>,
    expired: Vec<u32>,
    left: Vec<u32>,
    abandoned: Vec<u32>,
}

pub(super) async fn now(
    State(admin): State<Arc<AdminState>>,
    PathParams(id): PathParams<ItemId>,
) -> AdminResult<Json<LineDetail>> {
    let at = admin.clock.now_ms();
    let ids = [id];
    let reads = async {
        tokio::try_join!(
            admin.store.item(&ids[0]),
            admin.store.counts(&ids),
            admin.store.settings(),
            admin.store.heartbeats(at),
            admin.store.signal_counts(&ids[0], at),
        )
    };
    let (item, counts, settings, heartbeats, signals) = store_call(reads).await?;
    let [id] = ids;
    let Some((item, counts)) = item.zip(counts.into_iter().next()) else {
        return Err(AdminError::ItemNotFound(id));
    };
    let speed = admin.monitor.admitted_per_second(&id, counts.totals.admitted, at);
    let lanes = lane_figures(&item.policy.lanes, &counts.lanes);
    let pace = PaceView::of_item(&item);
    let item = ItemView::new(item, Some(&counts), &settings, at);
    let waiting = counts.waiting + counts.returning;
    let mut events = Processes::from_heartbeats(heartbeats).events;
    events.retain(|event| event.item_id == id);
    Ok(Json(LineDetail {
        at: rfc3339(at),
        admitted_per_second: speed,
        eta_seconds: admin
            .monitor
            .newcomer_estimate(&id, at)
            .map(|eta| eta.p50)
            .or_else(|| eta(item.line_state, waiting, speed)),
        estimates: admin.monitor.estimate_totals(&id).map(EstimateView::from),
        pace,
        people: LineFigures {
            waiting,
            returning: counts.returning,
            missed: counts.missed,
            entered: counts.entered,
            frontier: counts.front.0.saturating_sub(counts.base.0 + 1),
            tail: counts.tail.0.saturating_sub(counts.base.0),
            joined: counts.totals.joined,
            admitted: counts.totals.admitted,
            completed: counts.totals.completed,
            expired: counts.totals.expired,
            left: counts.totals.left,
            abandoned: counts.totals.abandoned,
        },
        item,
        signals,
        events,
        lanes,
    }))
}

/// Returns the figures of all lanes. `counts` are in the same order, the standard lane first.
fn lane_figures(policies: &[LanePolicy], counts: &[LaneCounts]) -> Vec<LaneFigures> {
    let standard = (LaneName::STANDARD, lane::standard_weight(policies), false);
    let others = policies.iter().map(|policy| (policy.name.as_str(), policy.weight, policy.first));
    let lanes = std::iter::once(standard).chain(others).zip(counts);
    lanes
        .map(|((name, weight, first), counts)| LaneFigures {
            name: name.to_owned(),
            weight,
            first,
            waiting: counts.waiting,
            returning: counts.returning,
            missed: counts.missed,
            entered: counts.entered,
            admitted: counts.totals.admitted,
        })
        .collect()
}

fn lane_example(name: &str, weight: u32, waiting: u64) -> Value {
    json!({
        "name": name, "weight": weight, "first": false,
        "waiting": waiting, "returning": 0, "missed": 2, "entered": 100, "admitted": 5000,
    })
}

pub(super) async fn history(
    State(admin): State<Arc<AdminState>>,
    PathParams(id): PathParams<ItemId>,
) -> AdminResult<Json<LineHistory>> {
    if store_call(admin.store.item(&id)).await?.is_none() {
        return Err(AdminError::ItemNotFound(id));
    }
    let samples = admin.monitor.samples(&id);
    let all = |figure: fn(&Sample) -> u32| samples.iter().map(figure).collect::<Vec<_>>();
    Ok(Json(LineHistory {
        replica: admin.leadership.replica().to_owned(),
        sample_ms: SAMPLE_MS,
        at: samples.iter().map(|sample| sample.at).collect(),
        waiting: all(|sample| sample.waiting),
        entered: all(|sample| sample.entered),
        frontier: all(|sample| sample.frontier),
        tail: all(|sample| sample.tail),
        joined: all(|sample| sample.joined),
        admitted: all(|sample| sample.admitted),
        completed: all(|sample| sample.completed),
        expired: all(|sample| sample.expired),
        left: all(|sample| sample.left),
        abandoned: all(|sample| sample.abandoned),
    }))
}
