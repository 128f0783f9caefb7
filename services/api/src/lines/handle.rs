//! One line as requests use it, and the state that its requests and its background task share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use daegi_domain::{Number, Ticket};
use daegi_runtime::Clock;
use daegi_store::{JoinOutcome, LaneJoin, LiveState, TicketState, TicketStore};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::batcher::{BatchSender, Batcher, JoinHandler, ResolveHandler, channel};
use super::caches::{MissingItems, SettingsCache, TicketStateCache};
use super::liveness::PendingMarks;
use super::refresher::{self, REFRESH_INTERVAL, Refresher};
use super::snapshot::{CachedLine, LineLoader, Lookup};
use super::{LineKey, RegistryInner};
use crate::error::{Error, Result};
use crate::metrics::Metrics;

/// Maximum age of a cached line that answers requests.
const MAX_AGE: Duration = Duration::from_secs(1);
/// How long a line is kept fresh after the last request of a waiting ticket. Requests at a lower
/// rate trigger the refresh themselves.
const IN_USE_FOR: Duration = Duration::from_secs(1);
/// Resolution of the time of the last request. Coarse, so that 10,000 polls per second write the
/// shared cache line 4 times, not 10,000 times.
const TOUCH_RESOLUTION_MS: u64 = 250;

/// Access to one line. Its task runs until the last handle is dropped.
pub(crate) struct LineHandle {
    pub(super) shared: Arc<SharedLine>,
    joins: BatchSender<LaneJoin, JoinOutcome>,
    resolves: BatchSender<Ticket, TicketState>,
}

/// The background work of a line: batches, refreshes and flushes.
pub(super) struct LineTask {
    shared: Arc<SharedLine>,
    joins: Batcher<LaneJoin, JoinOutcome>,
    resolves: Batcher<Ticket, TicketState>,
}

/// What all lines of a pod share.
pub(crate) struct LineContext {
    pub(super) store: Arc<dyn TicketStore>,
    pub(super) clock: Clock,
    pub(super) settings: SettingsCache,
    pub(super) metrics: Arc<Metrics>,
    pub(super) missing_items: MissingItems,
    pub(super) ticket_states: TicketStateCache,
}

/// What the handles and the task of one line share.
pub(crate) struct SharedLine {
    pub(super) key: LineKey,
    pub(super) context: Arc<LineContext>,
    pub(super) cached: ArcSwap<CachedLine>,
    pub(super) marks: PendingMarks,
    /// The last refresh found no such item.
    pub(super) item_missing: AtomicBool,
    pub(super) started_refreshes: AtomicU64,
    /// The last finished refresh, successful or not.
    pub(super) refreshes: watch::Sender<RefreshResult>,
    /// Signals changes that a waiting client can observe.
    pub(super) changes: watch::Sender<()>,
    /// Signals that tickets have ended; entries may be among them.
    pub(super) ends: watch::Sender<()>,
    /// Ends the refresher's sleep early.
    pub(super) wake_refresher: Notify,
    sleeping: AtomicBool,
    /// Time of the last request of a waiting ticket, in steps of [`TOUCH_RESOLUTION_MS`] plus one;
    /// 0 if there was none.
    last_touch: AtomicU64,
    created_at: Instant,
}

/// The outcome of one refresh.
#[derive(Debug, Clone)]
pub(super) struct RefreshResult {
    pub(super) number: u64,
    pub(super) outcome: Result<()>,
}

impl LineHandle {
    pub(super) fn new(shared: Arc<SharedLine>) -> (Self, LineTask) {
        let ((joins, join_batcher), (resolves, resolve_batcher)) = (channel(), channel());
        let task = LineTask {
            shared: Arc::clone(&shared),
            joins: join_batcher,
            resolves: resolve_batcher,
        };
        (Self { shared, joins, resolves }, task)
    }

    /// Returns the cached line if it is at most 1 s old.
    pub(crate) fn cached(&self) -> Option<Arc<CachedLine>> {
        self.cached_within(MAX_AGE)
    }

    /// Returns the cached line if it is recent enough for a position: at most [`REFRESH_INTERVAL`]
    /// old while the refresher sleeps. While the refresher is active, it keeps the line that recent
    /// unless the store is slow, so [`MAX_AGE`] applies.
    fn cached_for_ticket(&self) -> Option<Arc<CachedLine>> {
        self.cached_within(if self.shared.is_sleeping() { REFRESH_INTERVAL } else { MAX_AGE })
    }

    fn cached_within(&self, max_age: Duration) -> Option<Arc<CachedLine>> {
        let cached = self.shared.cached.load_full();
        let usable = !self.shared.item_missing.load(Ordering::Relaxed)
            && cached.loaded_at.elapsed() <= max_age;
        usable.then_some(cached)
    }

    /// Returns the cached line, refreshed if it is older than 1 s.
    pub(crate) async fn fresh(&self) -> Result<Arc<CachedLine>> {
        match self.cached() {
            Some(cached) => Ok(cached),
            None => self.refresh_existing().await,
        }
    }

    async fn fresh_for_ticket(&self) -> Result<Arc<CachedLine>> {
        match self.cached_for_ticket() {
            Some(cached) => Ok(cached),
            None => self.refresh_existing().await,
        }
    }

    async fn refresh_existing(&self) -> Result<Arc<CachedLine>> {
        if self.shared.item_missing.load(Ordering::Relaxed) {
            return Err(Error::ItemNotFound);
        }
        self.refresh().await
    }

    /// Returns the line as of a refresh that started after this call. Concurrent callers share one
    /// refresh.
    pub(crate) async fn refresh(&self) -> Result<Arc<CachedLine>> {
        let mut refreshes = self.shared.refreshes.subscribe();
        let started = self.shared.started_refreshes.load(Ordering::SeqCst);
        self.shared.wake_refresher.notify_one();
        let refresh = refreshes.wait_for(|refresh| refresh.number > started).await;
        refresh.map_err(|_| Error::StoreTimeout)?.outcome.clone()?;
        Ok(self.shared.cached.load_full())
    }

    /// Subscribes to changes that a waiting client can observe.
    pub(crate) fn subscribe_changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    /// Subscribes to ended tickets of the line; entries may be among them.
    pub(crate) fn subscribe_ends(&self) -> watch::Receiver<()> {
        self.shared.ends.subscribe()
    }

    /// Returns the state of a ticket and the line that it refers to, or `None` if only the store knows
    /// it. Nearly every poll is answered by this. Marks a waiting ticket as seen.
    pub(crate) fn locate(&self, ticket: &Ticket) -> Option<(Arc<CachedLine>, TicketState)> {
        if let Some(cached) = self.cached_for_ticket()
            && let Lookup::Waiting { position } = cached.lookup(ticket.number)
        {
            self.mark(&cached, ticket.number);
            return Some((cached, waiting(position)));
        }
        self.cached_state(ticket)
    }

    /// Returns the same as [`Self::locate`], with calls to the store where that returns `None`.
    pub(crate) async fn resolve(&self, ticket: &Ticket) -> Result<(Arc<CachedLine>, TicketState)> {
        if let Some(located) = self.locate(ticket) {
            return Ok(located);
        }
        let mut cached = self.fresh_for_ticket().await?;
        if cached.lookup(ticket.number) == Lookup::NotIssued {
            // This pod or another one has probably issued the number after the line was loaded.
            cached = self.refresh().await?;
        }
        let state = match cached.lookup(ticket.number) {
            Lookup::Waiting { position } => waiting(position),
            Lookup::NotWaiting | Lookup::NotIssued => {
                let state = self.resolves.send(ticket.clone()).await?;
                self.shared.context.ticket_states.insert(ticket, state, &cached);
                if is_waiting(state) && cached.may_miss_reclaimed(ticket.number) {
                    // The store has just reclaimed the number, so the cached line lacks it.
                    cached = self.refresh().await?;
                }
                match cached.lookup(ticket.number) {
                    Lookup::Waiting { position } if is_waiting(state) => waiting(position),
                    _ => state,
                }
            }
        };
        if is_waiting(state) {
            self.mark(&cached, ticket.number);
        }
        Ok((cached, state))
    }

    /// Joins one user to the lane of this line, together with concurrent joins. The user may have a ticket
    /// of another lane.
    pub(crate) async fn join(&self, join: LaneJoin) -> Result<JoinOutcome> {
        let joined = self.joins.send(join).await?;
        if let JoinOutcome::Ticket { lane, number, .. } = joined
            && lane == self.shared.key.lane
        {
            self.mark(&self.shared.cached.load(), number);
        }
        Ok(joined)
    }

    /// Writes all marks to the store. Afterwards no mark is in flight.
    pub(crate) async fn flush(&self) -> Result<()> {
        refresher::flush(&self.shared).await
    }

    /// Returns what the store replied about a ticket that does not wait, if that is recent.
    fn cached_state(&self, ticket: &Ticket) -> Option<(Arc<CachedLine>, TicketState)> {
        let cached = self.shared.cached.load_full();
        if self.shared.item_missing.load(Ordering::Relaxed)
            || cached.lookup(ticket.number) != Lookup::NotWaiting
        {
            return None;
        }
        let state = self.shared.context.ticket_states.get(ticket, &cached)?;
        Some((cached, state))
    }

    /// Marks a waiting ticket as seen and keeps the line fresh for it.
    fn mark(&self, cached: &CachedLine, number: Number) {
        self.shared.touch();
        if !cached.pages.mark(number) {
            self.shared.marks.mark_unpaged(number);
        }
    }
}

fn waiting(position: Option<u64>) -> TicketState {
    TicketState::Live(LiveState::Waiting { position })
}

fn is_waiting(state: TicketState) -> bool {
    matches!(state, TicketState::Live(LiveState::Waiting { .. }))
}

impl LineTask {
    /// Runs until the last handle is dropped, then writes the remaining marks.
    pub(super) async fn run(self, loader: LineLoader, registry: Weak<RegistryInner>) {
        let shared = Arc::clone(&self.shared);
        let refresher = Refresher::new(Arc::clone(&shared), loader, registry);
        let requests = async {
            tokio::join!(
                self.joins.run(JoinHandler(Arc::clone(&shared))),
                self.resolves.run(ResolveHandler(Arc::clone(&shared))),
            )
        };
        tokio::select! {
            _ = requests => {}
            _ = refresher.run() => {}
            _ = refresher::flush_loop(&shared) => {}
        }
        // `with_store_timeout` counts a failure; no client waits for it.
        let _ = refresher::flush(&shared).await;
    }
}

impl SharedLine {
    pub(super) fn new(key: LineKey, context: Arc<LineContext>, cached: CachedLine) -> Self {
        let first = RefreshResult { number: 0, outcome: Ok(()) };
        Self {
            key,
            context,
            cached: ArcSwap::from_pointee(cached),
            marks: PendingMarks::default(),
            item_missing: AtomicBool::new(false),
            started_refreshes: AtomicU64::new(0),
            refreshes: watch::Sender::new(first),
            changes: watch::Sender::new(()),
            ends: watch::Sender::new(()),
            wake_refresher: Notify::new(),
            sleeping: AtomicBool::new(false),
            last_touch: AtomicU64::new(0),
            created_at: Instant::now(),
        }
    }

    /// Records a request of a waiting ticket, and wakes the refresher if it sleeps.
    pub(super) fn touch(&self) {
        let step = self.step() + 1;
        if self.last_touch.load(Ordering::Relaxed) != step {
            self.last_touch.store(step, Ordering::SeqCst);
        }
        if self.sleeping.load(Ordering::SeqCst) {
            self.wake_refresher.notify_one();
        }
    }

    /// Returns whether a waiting ticket was polled within [`IN_USE_FOR`], or a request or connection
    /// waits for the line now.
    pub(super) fn is_in_use(&self) -> bool {
        (self.last_touch.load(Ordering::SeqCst) > 0 && self.idle() < IN_USE_FOR)
            || self.refreshes.receiver_count() > 0
            || self.changes.receiver_count() > 0
    }

    /// Returns the time since the last request of a waiting ticket.
    pub(super) fn idle(&self) -> Duration {
        let steps = (self.step() + 1).saturating_sub(self.last_touch.load(Ordering::SeqCst).max(1));
        Duration::from_millis(steps * TOUCH_RESOLUTION_MS)
    }

    /// Returns whether the refresher sleeps; the cached line is then only as recent as the last
    /// request required.
    pub(super) fn is_sleeping(&self) -> bool {
        self.sleeping.load(Ordering::Relaxed)
    }

    /// Marks the refresher as sleeping unless the line is in use. The flag is set before the check,
    /// so that a concurrent request either sees the flag or is seen by the check.
    pub(super) fn try_sleep(&self) -> bool {
        self.sleeping.store(true, Ordering::SeqCst);
        let may_sleep = !self.is_in_use();
        if !may_sleep {
            self.resume();
        }
        may_sleep
    }

    pub(super) fn resume(&self) {
        self.sleeping.store(false, Ordering::SeqCst);
    }

    fn step(&self) -> u64 {
        u64::try_from(self.created_at.elapsed().as_millis()).unwrap_or(u64::MAX)
            / TOUCH_RESOLUTION_MS
    }
}
