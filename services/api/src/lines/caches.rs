//! Bounded caches of a pod: settings, missing items, summaries of lines and states of tickets.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daegi_domain::{ItemId, LineState, Number, Settings, Ticket, UserId};
use daegi_store::{AdminStore, ItemStore, LiveState, TicketState};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::LineKey;
use super::handle::LineContext;
use super::snapshot::{CachedLine, Depth, LineLoader};
use crate::error::{Error, Result};
use crate::timeouts::with_store_timeout;

/// Maximum age of cached settings.
const SETTINGS_MAX_AGE: Duration = Duration::from_millis(900);
/// How long an item counts as missing: a new item is found after at most 1 s.
const MISSING_TTL: Duration = Duration::from_secs(1);
/// Missing items per generation of the cache, about 100 bytes each.
const MISSING_CAPACITY: usize = 16 * 1024;
/// Beyond this many first loads of items within [`MISSING_TTL`], one read of all ids is cheaper.
const MAX_FIRST_LOADS: u32 = 8;
/// Maximum age of a summary: as long as `Cache-Control` of the public line endpoint allows.
const SUMMARY_TTL: Duration = Duration::from_secs(1);
/// Summaries per generation of the cache, about 2 KB each.
const SUMMARY_CAPACITY: usize = 1024;
/// How long the end of a ticket is cached. An end is final unless a data loss undoes it. A pod that
/// has not detected the loss contradicts the store for at most these 5 s.
const ENDED_TTL: Duration = Duration::from_secs(5);
/// How long an entry is cached: the maximum age of a position.
const ENTRY_TTL: Duration = Duration::from_millis(250);
/// How long a state is cached while its item is missing: as long as the item counts as missing.
const WITHOUT_ITEM_TTL: Duration = MISSING_TTL;
/// Ticket states per generation of the cache, about 150 bytes each.
const STATE_CAPACITY: usize = 8 * 1024;

/// Keeps an entry for `ttl`, or for less if more than `capacity` others were inserted after it.
///
/// Entries live in two generations of at most `capacity` each. When the newer generation is full or
/// older than `ttl`, it replaces the older one and an empty generation follows, so that no call
/// scans the entries.
pub(crate) struct TtlCache<K, V> {
    ttl: Duration,
    capacity: usize,
    generations: Mutex<Generations<K, V>>,
}

struct Generations<K, V> {
    newer: HashMap<K, (Instant, V)>,
    older: HashMap<K, (Instant, V)>,
    began: Instant,
}

impl<K: Eq + Hash, V: Clone> TtlCache<K, V> {
    pub(crate) fn new(ttl: Duration, capacity: usize) -> Self {
        let (newer, older) = (HashMap::new(), HashMap::new());
        let generations = Mutex::new(Generations { newer, older, began: Instant::now() });
        Self { ttl, capacity, generations }
    }

    /// Returns `None` if there is no entry or it has expired.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let generations = self.lock();
        let (at, value) = generations.newer.get(key).or_else(|| generations.older.get(key))?;
        (at.elapsed() < self.ttl).then(|| value.clone())
    }

    pub(crate) fn insert(&self, key: K, value: V) {
        let (mut generations, now) = (self.lock(), Instant::now());
        self.rotate(&mut generations, now);
        generations.newer.insert(key, (now, value));
    }

    /// Returns the entry, or inserts the value that `make` returns.
    pub(super) fn get_or_insert(&self, key: &K, make: impl FnOnce() -> V) -> V
    where
        K: Clone,
    {
        let (mut generations, now) = (self.lock(), Instant::now());
        let known = generations.newer.get(key).or_else(|| generations.older.get(key));
        if let Some((at, value)) = known
            && *at + self.ttl > now
        {
            return value.clone();
        }
        let value = make();
        self.rotate(&mut generations, now);
        generations.newer.insert(key.clone(), (now, value.clone()));
        value
    }

    pub(crate) fn remove(&self, key: &K) {
        let mut generations = self.lock();
        generations.newer.remove(key);
        generations.older.remove(key);
    }

    fn rotate(&self, generations: &mut Generations<K, V>, now: Instant) {
        let is_old = generations.began + self.ttl <= now;
        if is_old || generations.newer.len() >= self.capacity {
            generations.older = std::mem::take(&mut generations.newer);
            generations.began = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Generations<K, V>> {
        // A poisoned lock is usable, because no call panics between two related changes.
        self.generations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The settings of all lines, read about once per second for all of them.
pub(crate) struct SettingsCache {
    store: Arc<dyn AdminStore>,
    last: AsyncMutex<Option<(Settings, Instant)>>,
}

impl SettingsCache {
    pub(super) fn new(store: Arc<dyn AdminStore>) -> Self {
        Self { store, last: AsyncMutex::default() }
    }

    /// Returns the current settings. The lock is held during the call, so that concurrent requests
    /// share it.
    pub(super) async fn current(&self) -> Result<Settings> {
        let mut last = self.last.lock().await;
        if let Some((settings, at)) = *last
            && at.elapsed() < SETTINGS_MAX_AGE
        {
            return Ok(settings);
        }
        let at = Instant::now();
        let settings = with_store_timeout("settings", self.store.settings()).await?;
        *last = Some((settings, at));
        Ok(settings)
    }
}

/// Items that requests name and that do not exist. Requests with random ids cost the store one read
/// of all ids per second, not one read each.
pub(super) struct MissingItems {
    store: Arc<dyn ItemStore>,
    missing: TtlCache<ItemId, ()>,
    first_loads: Mutex<FirstLoads>,
    ids: AsyncMutex<Option<(Instant, Arc<HashSet<ItemId>>)>>,
}

/// First loads of items since `began`.
struct FirstLoads {
    began: Instant,
    count: u32,
    /// Until when first loads are checked against the ids of all items.
    check_until: Instant,
}

impl MissingItems {
    pub(super) fn new(store: Arc<dyn ItemStore>) -> Self {
        let began = Instant::now();
        let first_loads = Mutex::new(FirstLoads { began, count: 0, check_until: began });
        let missing = TtlCache::new(MISSING_TTL, MISSING_CAPACITY);
        Self { store, missing, first_loads, ids: AsyncMutex::default() }
    }

    /// Returns whether the store had no such item within the last second.
    pub(super) fn contains(&self, id: &ItemId) -> bool {
        self.missing.get(id).is_some()
    }

    pub(super) fn insert(&self, id: &ItemId) {
        self.missing.insert(id.clone(), ());
    }

    /// Returns whether the ids of all items exclude this one. Reads the ids only during a flood of
    /// first loads; otherwise returns false.
    pub(super) async fn rules_out(&self, id: &ItemId) -> Result<bool> {
        if id.is_reserved() || !self.count_first_load() {
            return Ok(false);
        }
        Ok(!self.ids().await?.contains(id))
    }

    /// Counts a first load. Returns whether there are more than [`MAX_FIRST_LOADS`].
    fn count_first_load(&self) -> bool {
        let mut loads = self.first_loads.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now >= loads.began + MISSING_TTL {
            (loads.began, loads.count) = (now, 0);
        }
        loads.count = loads.count.saturating_add(1);
        if loads.count > MAX_FIRST_LOADS {
            loads.check_until = now + MISSING_TTL;
        }
        now < loads.check_until
    }

    /// Returns the ids of all items, read at most once per second. The lock is held during the read,
    /// so that concurrent requests share it.
    async fn ids(&self) -> Result<Arc<HashSet<ItemId>>> {
        let mut known = self.ids.lock().await;
        if let Some((at, ids)) = &*known
            && at.elapsed() < MISSING_TTL
        {
            return Ok(Arc::clone(ids));
        }
        let at = Instant::now();
        let ids = with_store_timeout("item_ids", self.store.item_ids()).await?;
        let ids: Arc<HashSet<ItemId>> = Arc::new(ids.into_iter().collect());
        *known = Some((at, Arc::clone(&ids)));
        Ok(ids)
    }
}

type SummaryLoad = Shared<BoxFuture<'static, Result<Arc<CachedLine>>>>;

/// Summaries of lines that no ticket of this pod needs. A summary costs one read per item and second
/// and keeps no task running, so that a client that requests all items of a shop occupies only this
/// bounded cache.
pub(super) struct SummaryCache {
    context: Arc<LineContext>,
    tracker: TaskTracker,
    loads: TtlCache<LineKey, SummaryLoad>,
}

impl SummaryCache {
    pub(super) fn new(context: Arc<LineContext>, tracker: TaskTracker) -> Self {
        Self { context, tracker, loads: TtlCache::new(SUMMARY_TTL, SUMMARY_CAPACITY) }
    }

    /// Returns the summary of a line. Concurrent requests share a read.
    pub(super) async fn get(&self, key: &LineKey) -> Result<Arc<CachedLine>> {
        let loaded = self.loads.get_or_insert(key, || self.load(key)).await;
        if loaded.as_ref().is_err_and(Error::is_transient) {
            self.loads.remove(key);
        }
        loaded
    }

    /// Loads on a separate task, because all waiting requests may be cancelled, and a suspended load
    /// would keep its locks.
    fn load(&self, key: &LineKey) -> SummaryLoad {
        let (context, key) = (Arc::clone(&self.context), key.clone());
        let (sender, receiver) = oneshot::channel();
        self.tracker.spawn(async move {
            let cached = LineLoader::new().load_first(&key, &context, Depth::Summary).await;
            // Sending fails only if no request waits.
            let _ = sender.send(cached.map(Arc::new));
        });
        receiver.map(|loaded| loaded.unwrap_or(Err(Error::StoreTimeout))).boxed().shared()
    }
}

/// States of tickets that do not wait, as the store returned them, so that repeated polls of one
/// ticket share a call.
pub(super) struct TicketStateCache {
    states: TtlCache<(LineKey, Number), CachedState>,
    without_item: TtlCache<(LineKey, Number), (UserId, TicketState)>,
}

#[derive(Clone)]
struct CachedState {
    user: UserId,
    state: TicketState,
    line: LineVersion,
    ended: u64,
    at: Instant,
}

/// Changes when a line is restarted or loses data.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LineVersion {
    base: Number,
    valid_from: Number,
}

impl TicketStateCache {
    pub(super) fn new() -> Self {
        Self {
            states: TtlCache::new(ENDED_TTL, STATE_CAPACITY),
            without_item: TtlCache::new(WITHOUT_ITEM_TTL, STATE_CAPACITY),
        }
    }

    /// Returns the cached state, or `None` if `line` shows that it may have changed.
    pub(super) fn get(&self, ticket: &Ticket, line: &CachedLine) -> Option<TicketState> {
        let cached = self.states.get(&(ticket.into(), ticket.number))?;
        let is_same_line = cached.line == LineVersion::from(line)
            && cached.user == ticket.user
            && line.state != LineState::Recovering;
        let is_current = match cached.state {
            TicketState::Ended(_) | TicketState::Restarted => true,
            TicketState::Live(LiveState::Entered { .. }) => {
                cached.ended == line.line.ended && cached.at.elapsed() < ENTRY_TTL
            }
            TicketState::Live(LiveState::Waiting { .. })
            | TicketState::ItemRemoved
            | TicketState::ItemUnknown => false,
        };
        (is_same_line && is_current).then_some(cached.state)
    }

    /// Caches a state that the store returned after `line` was loaded.
    pub(super) fn insert(&self, ticket: &Ticket, state: TicketState, line: &CachedLine) {
        let is_cacheable = !matches!(
            state,
            TicketState::Live(LiveState::Waiting { .. })
                | TicketState::ItemRemoved
                | TicketState::ItemUnknown
        );
        if is_cacheable && line.state != LineState::Recovering {
            let (user, version, at) =
                (ticket.user.clone(), LineVersion::from(line), Instant::now());
            let cached = CachedState { user, state, line: version, ended: line.line.ended, at };
            self.states.insert((ticket.into(), ticket.number), cached);
        }
    }

    /// Returns the cached state of a ticket whose item is missing.
    pub(super) fn get_without_item(&self, ticket: &Ticket) -> Option<TicketState> {
        let (user, state) = self.without_item.get(&(ticket.into(), ticket.number))?;
        (user == ticket.user).then_some(state)
    }

    pub(super) fn insert_without_item(&self, ticket: &Ticket, state: TicketState) {
        let key = (ticket.into(), ticket.number);
        self.without_item.insert(key, (ticket.user.clone(), state));
    }

    /// Removes the state of a ticket that this pod ends.
    pub(super) fn remove(&self, ticket: &Ticket) {
        let key = (ticket.into(), ticket.number);
        self.states.remove(&key);
        self.without_item.remove(&key);
    }
}

impl From<&CachedLine> for LineVersion {
    fn from(cached: &CachedLine) -> Self {
        Self { base: cached.line.base, valid_from: cached.line.valid_from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn an_entry_expires_on_time_however_generations_turn() {
        let cache = TtlCache::new(SECOND, 10);
        cache.insert(1, "one");
        tokio::time::sleep(SECOND * 9 / 10).await;
        cache.insert(2, "two");
        assert_eq!((cache.get(&1), cache.get(&2)), (Some("one"), Some("two")));
        tokio::time::sleep(SECOND / 5).await;
        cache.insert(3, "three");
        assert_eq!((cache.get(&1), cache.get(&2)), (None, Some("two")));
        assert_eq!(cache.get_or_insert(&2, || "other"), "two");
        assert_eq!(cache.get_or_insert(&1, || "again"), "again");
        cache.remove(&2);
        assert_eq!(cache.get(&2), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_keys_cannot_make_the_cache_grow() {
        let cache = TtlCache::new(SECOND, 10);
        for n in 0..1000 {
            cache.insert(n, n);
        }
        let generations = cache.lock();
        assert!(generations.newer.len() + generations.older.len() <= 20);
        drop(generations);
        assert_eq!(cache.get(&999), Some(999));
    }
}
