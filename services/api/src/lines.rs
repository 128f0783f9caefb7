//! The lines that this pod caches. Polls are answered from here and cost the store nothing.
//!
//! | file | contents |
//! |---|---|
//! | `lines/handle.rs` | one line as requests use it: locate, resolve, join; what its requests and its task share |
//! | `lines/snapshot.rs` | the cached copy of a line, positions in it, and how it is loaded |
//! | `lines/refresher.rs` | the task that keeps a line fresh while waiting tickets are polled |
//! | `lines/batcher.rs` | shares one store call among concurrent joins or resolves |
//! | `lines/liveness.rs` | marks of seen tickets: set without a lock, flushed every 3 s |
//! | `lines/caches.rs` | settings, missing items, summaries of lines, states of tickets |
//!
//! A cached line is found without a lock. It is evicted after a minute without a poll of a waiting
//! ticket, or earlier if the pod has reached its maximum; its task ends when the last request drops
//! its handle. Only joins and tickets load a line.

mod batcher;
mod caches;
mod handle;
mod liveness;
mod refresher;
mod snapshot;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use daegi_domain::{ItemId, Lane, Ticket};
use daegi_runtime::{Clock, Shutdown};
use daegi_store::{SharedStore, TicketState};
use metrics::gauge;
use tokio::sync::watch;

use self::caches::{MissingItems, SettingsCache, SummaryCache, TicketStateCache};
use self::handle::{LineContext, SharedLine};
use self::snapshot::{Depth, LineLoader};
use crate::error::{Error, Result};
use crate::metrics::{LINES, Metrics};

pub(crate) use self::caches::TtlCache;
pub(crate) use self::handle::LineHandle;
pub(crate) use self::snapshot::CachedLine;

/// All cached lines of a pod. Clones share them.
#[derive(Clone)]
pub(crate) struct LineRegistry(Arc<RegistryInner>);

/// Identifies a line: each lane of an item has its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LineKey {
    pub(crate) item: ItemId,
    pub(crate) lane: Lane,
}

type LoadedLines = HashMap<LineKey, Arc<LineHandle>>;
/// A load in progress that the first requests for a line share.
type PendingLoad = watch::Receiver<Option<Result<Arc<LineHandle>>>>;

pub(crate) struct RegistryInner {
    context: Arc<LineContext>,
    shutdown: Shutdown,
    /// Maximum number of cached lines.
    max_lines: usize,
    summaries: SummaryCache,
    /// Read by every request. Replaced as a whole, with `pending` locked.
    loaded: ArcSwap<LoadedLines>,
    pending: Mutex<HashMap<LineKey, PendingLoad>>,
}

impl LineKey {
    /// The line of an item's standard lane.
    pub(crate) fn standard(item: &ItemId) -> Self {
        Self { item: item.clone(), lane: Lane::STANDARD }
    }
}

impl From<&Ticket> for LineKey {
    fn from(ticket: &Ticket) -> Self {
        Self { item: ticket.item.clone(), lane: ticket.lane }
    }
}

impl LineRegistry {
    pub(crate) fn new(
        store: SharedStore,
        clock: Clock,
        metrics: Arc<Metrics>,
        max_lines: usize,
        shutdown: &Shutdown,
    ) -> Self {
        let settings = SettingsCache::new(store.clone());
        let (missing_items, ticket_states) =
            (MissingItems::new(store.clone()), TicketStateCache::new());
        let context =
            Arc::new(LineContext { store, clock, settings, metrics, missing_items, ticket_states });
        let registry = Arc::new(RegistryInner {
            summaries: SummaryCache::new(Arc::clone(&context), shutdown.tracker().clone()),
            context,
            shutdown: shutdown.clone(),
            max_lines,
            loaded: ArcSwap::default(),
            pending: Mutex::default(),
        });
        shutdown.spawn("api lines", Arc::clone(&registry).close_at_shutdown());
        Self(registry)
    }

    /// Returns a line. Concurrent first requests for one line share one load.
    pub(crate) async fn get_or_load(&self, key: &LineKey) -> Result<Arc<LineHandle>> {
        if let Some(line) = self.get(key) {
            return Ok(line);
        }
        if self.0.context.missing_items.contains(&key.item) {
            return Err(Error::ItemNotFound);
        }
        let mut pending = match self.0.load_or_join(key) {
            Ok(line) => return Ok(line),
            Err(pending) => pending,
        };
        let loaded = pending.wait_for(Option::is_some).await;
        // Closed without a result: the runtime has ended the loading task.
        loaded.ok().and_then(|loaded| loaded.clone()).unwrap_or(Err(Error::StoreTimeout))
    }

    /// Returns the public part of a line, at most 1 s old. Does not cache the line for tickets.
    pub(crate) async fn summary(&self, key: &LineKey) -> Result<Arc<CachedLine>> {
        match self.get(key) {
            Some(line) => line.fresh().await,
            None if self.0.context.missing_items.contains(&key.item) => Err(Error::ItemNotFound),
            None => self.0.summaries.get(key).await,
        }
    }

    /// Returns the cached state of a ticket whose item is missing.
    pub(crate) fn cached_state_without_item(&self, ticket: &Ticket) -> Option<TicketState> {
        self.0.context.ticket_states.get_without_item(ticket)
    }

    pub(crate) fn cache_state_without_item(&self, ticket: &Ticket, state: TicketState) {
        self.0.context.ticket_states.insert_without_item(ticket, state);
    }

    /// Removes the cached state of a ticket that this pod ends.
    pub(crate) fn discard_cached_state(&self, ticket: &Ticket) {
        self.0.context.ticket_states.remove(ticket);
    }

    /// Returns a line if it is cached.
    pub(crate) fn get(&self, key: &LineKey) -> Option<Arc<LineHandle>> {
        self.0.loaded.load().get(key).cloned()
    }

    /// Removes a line from the cache.
    pub(crate) fn evict(&self, line: &LineHandle) {
        self.0.evict(&line.shared);
    }
}

impl RegistryInner {
    /// Returns the line if it has been loaded meanwhile, otherwise the load to wait for.
    fn load_or_join(
        self: &Arc<Self>,
        key: &LineKey,
    ) -> std::result::Result<Arc<LineHandle>, PendingLoad> {
        let mut pending = self.lock_pending();
        if let Some(line) = self.loaded.load().get(key) {
            return Ok(Arc::clone(line));
        }
        let start = || {
            let (done, wait) = watch::channel(None);
            // On a separate task, because all waiting requests may be cancelled, and the pending
            // entry must be removed anyway.
            let load = Arc::clone(self).load(key.clone(), done);
            self.shutdown.tracker().spawn(load);
            wait
        };
        Err(pending.entry(key.clone()).or_insert_with(start).clone())
    }

    async fn load(
        self: Arc<Self>,
        key: LineKey,
        done: watch::Sender<Option<Result<Arc<LineHandle>>>>,
    ) {
        let loaded = self.read(&key).await;
        let mut pending = self.lock_pending();
        if let Ok(line) = &loaded {
            self.insert(&key, line);
        }
        pending.remove(&key);
        done.send_replace(Some(loaded));
    }

    async fn read(self: &Arc<Self>, key: &LineKey) -> Result<Arc<LineHandle>> {
        let mut loader = LineLoader::new();
        let cached = loader.load_first(key, &self.context, Depth::Positions).await?;
        let shared = Arc::new(SharedLine::new(key.clone(), Arc::clone(&self.context), cached));
        let (line, task) = LineHandle::new(shared);
        let registry = Arc::downgrade(self);
        self.shutdown.spawn("api line", task.run(loader, registry));
        Ok(Arc::new(line))
    }

    /// Caches a line; `pending` must be locked. Does nothing during shutdown, or if all cached lines
    /// are in use and the maximum is reached: the line then lives as long as its requests.
    fn insert(&self, key: &LineKey, line: &Arc<LineHandle>) {
        if self.shutdown.token().is_cancelled() {
            return;
        }
        let mut loaded = LoadedLines::clone(&self.loaded.load());
        if loaded.len() >= self.max_lines && !evict_idlest(&mut loaded) {
            return;
        }
        loaded.insert(key.clone(), Arc::clone(line));
        self.replace(loaded);
    }

    /// Removes this line, but not a newer one with the same key.
    fn evict(&self, shared: &Arc<SharedLine>) {
        let _only_writer = self.lock_pending();
        let mut loaded = LoadedLines::clone(&self.loaded.load());
        let known = loaded.get(&shared.key).is_some_and(|line| Arc::ptr_eq(&line.shared, shared));
        if known {
            loaded.remove(&shared.key);
            self.replace(loaded);
        }
    }

    fn replace(&self, loaded: LoadedLines) {
        gauge!(LINES).set(loaded.len() as f64);
        self.loaded.store(Arc::new(loaded));
    }

    async fn close_at_shutdown(self: Arc<Self>) {
        self.shutdown.token().cancelled().await;
        let _only_writer = self.lock_pending();
        self.replace(LoadedLines::new());
    }

    fn lock_pending(&self) -> MutexGuard<'_, HashMap<LineKey, PendingLoad>> {
        // A poisoned lock is usable, because no call panics between two related changes.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the line that has been idle the longest. Returns false if all are in use.
fn evict_idlest(loaded: &mut LoadedLines) -> bool {
    let unused = loaded.values().filter(|line| !line.shared.is_in_use());
    let idlest = unused.max_by_key(|line| line.shared.idle()).map(|line| line.shared.key.clone());
    idlest.is_some_and(|key| loaded.remove(&key).is_some())
}
