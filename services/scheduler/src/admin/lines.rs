//! One line: how it is now, and how it was.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use daegi_domain::{ItemId, Millis, rfc3339};
use daegi_runtime::http::PathParams;
use serde::Serialize;

use super::picture::eta;
use super::processes::{EventView, Processes};
use super::view::ItemView;
use super::{Admin, AdminError, Answer, ask};
use crate::lookout::{SAMPLE_MS, Sample};

/// A line now.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LineNow {
    /// RFC 3339.
    at: String,
    item: ItemView,
    people: People,
    /// Over the last half minute; null while this replica does not know yet.
    admitted_per_second: Option<f64>,
    /// Until somebody who joins now is let in; null while nobody can say.
    eta_seconds: Option<u64>,
    /// What the leader published of this line lately, newest first.
    events: Vec<EventView>,
}

/// Where people are, and what became of all who ever joined.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct People {
    waiting: u64,
    /// Those of them who missed their turn, came back, and are served first.
    returning: u64,
    /// Put aside because nobody had seen them when their turn came.
    missed: u64,
    entered: u64,
    /// How many numbers the front has passed since the line began,
    frontier: u64,
    /// and how many were given.
    tail: u64,
    joined: u64,
    admitted: u64,
    completed: u64,
    expired: u64,
    left: u64,
    abandoned: u64,
}

/// A line over time, one list for each figure, oldest first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LineHistory {
    /// The replica that remembers it; it forgets with its process.
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
    State(admin): State<Arc<Admin>>,
    PathParams(id): PathParams<ItemId>,
) -> Answer<Json<LineNow>> {
    let at = admin.clock.now_ms();
    let ids = [id];
    let asked = async {
        tokio::try_join!(
            admin.store.item(&ids[0]),
            admin.store.counts(&ids),
            admin.store.settings(),
            admin.store.notices(at),
        )
    };
    let (item, counts, settings, notices) = ask(asked).await?;
    let [id] = ids;
    let Some((item, counts)) = item.zip(counts.into_iter().next()) else {
        return Err(AdminError::NoItem(id));
    };
    let speed = admin.lookout.admitted_per_second(&id, counts.totals.admitted, at);
    let item = ItemView::new(item, Some(&counts), &settings, at);
    let waiting = counts.waiting + counts.returning;
    let mut events = Processes::of(notices).events;
    events.retain(|event| event.item_id == id);
    Ok(Json(LineNow {
        at: rfc3339(at),
        admitted_per_second: speed,
        eta_seconds: eta(item.line_state, waiting, speed),
        people: People {
            waiting,
            returning: counts.returning,
            missed: counts.missed,
            entered: counts.entered,
            frontier: counts.frontier.0.saturating_sub(counts.base.0 + 1),
            tail: counts.tail.0.saturating_sub(counts.base.0),
            joined: counts.totals.joined,
            admitted: counts.totals.admitted,
            completed: counts.totals.completed,
            expired: counts.totals.expired,
            left: counts.totals.left,
            abandoned: counts.totals.abandoned,
        },
        item,
        events,
    }))
}

pub(super) async fn history(
    State(admin): State<Arc<Admin>>,
    PathParams(id): PathParams<ItemId>,
) -> Answer<Json<LineHistory>> {
    if ask(admin.store.item(&id)).await?.is_none() {
        return Err(AdminError::NoItem(id));
    }
    let samples = admin.lookout.samples(&id);
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
