//! Everything at a glance: all lines, who leads, what lags. Made for a page that asks every second
//! and for a thousand lines: the picture is taken once for all who ask at the same time, and each
//! gets the part of it they look at.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use daegi_domain::{Item, ItemId, ItemName, LineState, Millis, Settings, rfc3339};
use daegi_runtime::http::QueryParams;
use daegi_store::Counts;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::processes::Processes;
use super::{Admin, Answer, within};
use crate::leader::outbox_pending;

/// How old a picture may be.
const FRESH: Duration = Duration::from_millis(700);

/// How long a picture may take: it is thousands of calls where there are a thousand lines.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many lines are answered where nobody says, and at most.
const LIMITS: (usize, usize) = (50, 1_000);

/// The latest picture; whoever takes a new one keeps it locked, so that others wait for it.
pub(super) type Latest = Mutex<Option<(Instant, Arc<Picture>)>>;

/// What the lines look like at one moment.
#[derive(Debug)]
pub(super) struct Picture {
    at: Millis,
    settings: Settings,
    outbox_pending: u64,
    processes: Processes,
    totals: Totals,
    lines: Vec<LineView>,
}

/// A line in a table.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LineView {
    item_id: ItemId,
    item_name: ItemName,
    line_state: LineState,
    waiting_count: u64,
    entered_count: u64,
    remain_count: u32,
    /// Over the last half minute; null while this replica does not know yet.
    admitted_per_second: Option<f64>,
    /// Until somebody who joins now is let in; null while nobody can say.
    eta_seconds: Option<u64>,
}

/// All lines together.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Totals {
    lines: usize,
    open: usize,
    paused: usize,
    sold_out: usize,
    disabled: usize,
    recovering: usize,
    waiting: u64,
    entered: u64,
    admitted_per_second: f64,
}

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
        processes: picture.processes.clone(),
        totals: picture.totals.clone(),
        matching,
        lines: lines.cloned().collect(),
    }))
}

impl Admin {
    /// A picture that is fresh enough.
    async fn picture(&self) -> Answer<Arc<Picture>> {
        let mut latest = self.latest.lock().await;
        if let Some((_, picture)) = latest.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Ok(Arc::clone(picture));
        }
        let picture = Arc::new(within(PATIENCE, self.take_picture()).await?);
        *latest = Some((Instant::now(), Arc::clone(&picture)));
        Ok(picture)
    }

    async fn take_picture(&self) -> daegi_store::Result<Picture> {
        let lines = async {
            let items = self.store.items().await?;
            let ids: Vec<_> = items.iter().map(|item| item.id.clone()).collect();
            Ok((items, self.store.counts(&ids).await?))
        };
        let at = self.clock.now_ms();
        let ((items, counts), settings, outbox_pending, notices) = tokio::try_join!(
            lines,
            self.store.settings(),
            outbox_pending(&self.store),
            self.store.notices(at),
        )?;
        // Both come sorted by id; an item that was removed in between has no counts.
        let mut counts = counts.into_iter().peekable();
        let lines: Vec<_> = items
            .into_iter()
            .filter_map(|item| {
                let count = counts.next_if(|count| count.item == item.id)?;
                Some(self.line_view(item, &count, &settings, at))
            })
            .collect();
        let totals = Totals::of(&lines);
        let processes = Processes::of(notices);
        Ok(Picture { at, settings, outbox_pending, processes, totals, lines })
    }

    fn line_view(&self, item: Item, counts: &Counts, settings: &Settings, at: Millis) -> LineView {
        let line_state = LineState::of(&item, settings, at);
        let waiting_count = counts.waiting + counts.returning;
        let speed = self.lookout.admitted_per_second(&item.id, counts.totals.admitted, at);
        LineView {
            eta_seconds: eta(line_state, waiting_count, speed),
            admitted_per_second: speed,
            item_id: item.id,
            item_name: item.name,
            line_state,
            waiting_count,
            entered_count: counts.entered,
            remain_count: item.stock,
        }
    }
}

/// How long somebody waits who joins now.
pub(super) fn eta(state: LineState, waiting: u64, speed: Option<f64>) -> Option<u64> {
    let speed = speed.filter(|speed| *speed > 0.0 && state == LineState::Open)?;
    Some((waiting as f64 / speed).ceil() as u64)
}

impl Totals {
    fn of(lines: &[LineView]) -> Self {
        let mut totals = Self { lines: lines.len(), ..Self::default() };
        for line in lines {
            *match line.line_state {
                LineState::Open => &mut totals.open,
                LineState::Paused => &mut totals.paused,
                LineState::SoldOut => &mut totals.sold_out,
                LineState::Disabled => &mut totals.disabled,
                LineState::Recovering => &mut totals.recovering,
            } += 1;
            totals.waiting += line.waiting_count;
            totals.entered += line.entered_count;
            totals.admitted_per_second += line.admitted_per_second.unwrap_or(0.0);
        }
        totals
    }
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
