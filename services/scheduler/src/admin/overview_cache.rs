//! The snapshot of all lines behind the overview. Consoles poll every second and there may be
//! thousands of lines, so one snapshot is loaded for all callers, in the background while they get
//! the previous one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daegi_domain::line_rules::line_state;
use daegi_domain::{Item, ItemId, ItemName, LineState, Millis, Settings};
use daegi_store::LineCounts;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use super::processes::Processes;
use super::{AdminResult, AdminState, with_timeout};
use crate::leader::outbox_pending;

/// Age below which a snapshot is returned without loading a new one.
const FRESH_FOR: Duration = Duration::from_millis(700);

/// Age above which a snapshot is not returned.
const MAX_AGE: Duration = Duration::from_millis(2_500);

/// Timeout of loading a snapshot. It is longer than that of other admin calls, because a snapshot of
/// a thousand lines takes thousands of store calls.
const LOAD_TIMEOUT: Duration = Duration::from_secs(3);

/// All lines at one point in time.
#[derive(Debug)]
pub(super) struct OverviewSnapshot {
    pub(super) at: Millis,
    pub(super) settings: Settings,
    pub(super) outbox_pending: u64,
    pub(super) store_memory: Option<StoreMemory>,
    pub(super) processes: Processes,
    pub(super) totals: Totals,
    pub(super) lines: Vec<LineView>,
}

/// Memory of the fullest server of the store.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoreMemory {
    used_bytes: u64,
    /// 0 without a limit.
    limit_bytes: u64,
    /// Whether new tickets are refused.
    full: bool,
}

/// A line in a table.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Line")]
pub(super) struct LineView {
    pub(super) item_id: ItemId,
    pub(super) item_name: ItemName,
    pub(super) line_state: LineState,
    pub(super) waiting_count: u64,
    pub(super) entered_count: u64,
    pub(super) remain_count: u32,
    /// Over the last 30 s; null until this replica has samples.
    pub(super) admitted_per_second: Option<f64>,
    /// Until a ticket that joins now is admitted; null if unknown.
    pub(super) eta_seconds: Option<u64>,
}

/// All lines together.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Totals {
    lines: usize,
    open: usize,
    paused: usize,
    sold_out: usize,
    disabled: usize,
    recovering: usize,
    held: usize,
    scheduled: usize,
    lobby: usize,
    closed: usize,
    waiting: u64,
    entered: u64,
    admitted_per_second: f64,
}

/// The latest snapshot, and the lock to load the next one.
#[derive(Debug, Default)]
pub(super) struct OverviewCache {
    state: Mutex<CacheState>,
    load_lock: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct CacheState {
    latest: Option<(Instant, Arc<OverviewSnapshot>)>,
    /// How many changes operators have made through this replica.
    changes: u64,
}

impl OverviewCache {
    /// Drops the snapshot after an operator's change, so that the operator sees the change.
    pub(super) fn invalidate(&self) {
        let mut state = self.state();
        state.latest = None;
        state.changes += 1;
    }

    fn latest(&self) -> Option<(Duration, Arc<OverviewSnapshot>)> {
        let state = self.state();
        state.latest.as_ref().map(|(at, snapshot)| (at.elapsed(), Arc::clone(snapshot)))
    }

    fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Stores a snapshot, unless an operator changed something since its load began.
    fn publish_if_current(&self, snapshot: &Arc<OverviewSnapshot>, changes: u64) {
        let mut state = self.state();
        if state.changes == changes {
            state.latest = Some((Instant::now(), Arc::clone(snapshot)));
        }
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        // No code that can panic runs while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdminState {
    /// Returns a recent snapshot. One that is not fresh is returned as well while the next one is
    /// loaded in the background, so that pollers do not wait for a thousand lines.
    pub(super) async fn overview(self: &Arc<Self>) -> AdminResult<Arc<OverviewSnapshot>> {
        match self.overview_cache.latest() {
            Some((age, snapshot)) if age < FRESH_FOR => Ok(snapshot),
            Some((age, snapshot)) if age < MAX_AGE => {
                let admin = Arc::clone(self);
                self.tasks.spawn(async move { admin.load_in_background().await });
                Ok(snapshot)
            }
            _ => self.reload().await,
        }
    }

    /// Loads a snapshot for later callers, unless a load is running. A failure is ignored: once the
    /// latest snapshot is too old, a caller loads the next one itself and gets the error.
    async fn load_in_background(&self) {
        if let Ok(_one_at_a_time) = self.overview_cache.load_lock.try_lock() {
            let _ = self.load_if_stale().await;
        }
    }

    /// Waits for a running load, then loads a snapshot, unless that load stored a fresh one.
    async fn reload(&self) -> AdminResult<Arc<OverviewSnapshot>> {
        let _one_at_a_time = self.overview_cache.load_lock.lock().await;
        self.load_if_stale().await
    }

    /// Loads a snapshot, unless there is a fresh one.
    async fn load_if_stale(&self) -> AdminResult<Arc<OverviewSnapshot>> {
        if let Some((_, snapshot)) =
            self.overview_cache.latest().filter(|(age, _)| *age < FRESH_FOR)
        {
            return Ok(snapshot);
        }
        let changes = self.overview_cache.changes();
        let snapshot = Arc::new(with_timeout(LOAD_TIMEOUT, self.load()).await?);
        self.overview_cache.publish_if_current(&snapshot, changes);
        Ok(snapshot)
    }

    async fn load(&self) -> daegi_store::Result<OverviewSnapshot> {
        let lines = async {
            let items = self.store.items().await?;
            let ids: Vec<_> = items.iter().map(|item| item.id.clone()).collect();
            Ok((items, self.store.counts(&ids).await?))
        };
        let at = self.clock.now_ms();
        let ((items, counts), settings, outbox_pending, heartbeats, memory) = tokio::try_join!(
            lines,
            self.store.settings(),
            outbox_pending(&self.store),
            self.store.heartbeats(at),
            self.store.memory(),
        )?;
        let store_memory = memory.map(|memory| StoreMemory {
            used_bytes: memory.used,
            limit_bytes: memory.limit,
            full: memory.is_high(),
        });
        // Both come sorted by id; an item that was removed in between has no counts.
        let mut counts = counts.into_iter().peekable();
        let lines: Vec<_> = items
            .into_iter()
            .filter_map(|item| {
                let count = counts.next_if(|count| count.item == item.id)?;
                Some(self.line_view(item, &count, &settings, at))
            })
            .collect();
        let totals = Totals::new(&lines);
        let processes = Processes::from_heartbeats(heartbeats);
        Ok(OverviewSnapshot {
            at,
            settings,
            outbox_pending,
            store_memory,
            processes,
            totals,
            lines,
        })
    }

    fn line_view(
        &self,
        item: Item,
        counts: &LineCounts,
        settings: &Settings,
        at: Millis,
    ) -> LineView {
        let line_state = line_state(&item, counts.front_is_above_base(), settings, at);
        let waiting_count = counts.waiting + counts.returning;
        let speed = self.monitor.admitted_per_second(&item.id, counts.totals.admitted, at);
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

/// Returns the waiting time in seconds of a ticket that joins now; `None` if the line is not open, or
/// its admission rate is unknown or 0.
pub(super) fn eta(state: LineState, waiting: u64, speed: Option<f64>) -> Option<u64> {
    let speed = speed.filter(|speed| *speed > 0.0 && state == LineState::Open)?;
    Some((waiting as f64 / speed).ceil() as u64)
}

impl Totals {
    pub(super) fn new<'a>(lines: impl IntoIterator<Item = &'a LineView>) -> Self {
        let mut totals = Self::default();
        for line in lines {
            totals.lines += 1;
            *match line.line_state {
                LineState::Open => &mut totals.open,
                LineState::Paused => &mut totals.paused,
                LineState::SoldOut => &mut totals.sold_out,
                LineState::Disabled => &mut totals.disabled,
                LineState::Recovering => &mut totals.recovering,
                LineState::Held => &mut totals.held,
                LineState::Scheduled => &mut totals.scheduled,
                LineState::Lobby => &mut totals.lobby,
                LineState::Closed => &mut totals.closed,
            } += 1;
            totals.waiting += line.waiting_count;
            totals.entered += line.entered_count;
            totals.admitted_per_second += line.admitted_per_second.unwrap_or(0.0);
        }
        totals
    }
}
