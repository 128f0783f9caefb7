//! The store on Redis: one Lua script per state change.
//!
//! | file | contents |
//! |---|---|
//! | `redis/keys.rs` | every key, hash-tagged by partition; no other file builds a key |
//! | `redis/scripts.rs` + `scripts/*.lua` | the registry of scripts, loaded when the store opens |
//! | `redis/{items,replay,tickets,admission,opening,control,outbox,admin,access,signals,history,pace}.rs` | the scripts and commands of each role |
//! | `redis/reply.rs` + `reply/` | replies of scripts, decoded into types of this crate |
//! | `redis/item_hash.rs` | an item as a hash |
//! | `redis/client.rs` + `client/` | the client: connections, deadlines, circuit breakers, topologies |
//! | `redis/generation.rs` | the generation of data that this process knows |
//! | `redis/capacity.rs` | whether new tickets are accepted: memory and waiting tickets, measured once per second |
//! | `redis/lock.rs`, `epoch.rs` | the lock of the lease, and the epochs of its terms |
//!
//! Plain commands are used only to read, and for the stream of the outbox.

mod access;
mod admin;
mod admission;
mod capacity;
pub(crate) mod client;
mod control;
mod epoch;
mod generation;
mod history;
mod item_hash;
mod items;
mod keys;
mod lock;
mod memory_usage;
mod opening;
mod outbox;
mod pace;
mod replay;
mod reply;
mod scripts;
mod signals;
mod tickets;
mod unique_users;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use ::redis::{FromRedisValue, Value};
use async_trait::async_trait;
use daegi_domain::liveness::{oldest_slice, slice_of};
use daegi_domain::{ItemId, Lane, MAX_LANES, Millis, RECOVERY_HOLD_MS, Settings, StoreLimits};
use futures_util::future::try_join_all;
use tokio::sync::Semaphore;

use self::admission::CohortPosition;
use self::capacity::Capacity;
use self::client::access::RedisConfig;
use self::client::{RedisClient, RedisUrl};
use self::keys::{LineKeys, PartitionKeys};
use self::lock::RedisLock;
#[doc(hidden)]
pub use self::scripts::script_text;
use self::scripts::{ScriptInvocation, Scripts, scripts};
use crate::{LeaveLimit, LockBackend, Result, Store, partition_of};

/// Lines that one call for many lines reads concurrently at most.
const MAX_CONCURRENT_CALLS: usize = 64;

/// All lines of a waiting room, in Redis.
pub struct RedisStore {
    client: Arc<RedisClient>,
    lock: RedisLock,
    partitions: u16,
    /// The latest epoch that this process has read; see `redis/epoch.rs`.
    epoch: AtomicU64,
    /// The settings of a store that has none: a new one, or one that lost its data.
    initial_settings: Settings,
    /// How long a line that lost data admits no ticket.
    recovery_hold: Millis,
    leave_limit: LeaveLimit,
    /// How many seconds of liveness the scripts of a line read, as far as this process knows. A
    /// script that needs more returns how many and changes nothing; see
    /// [`RedisStore::with_liveness_window`].
    windows: Mutex<HashMap<(ItemId, WindowKind), u32>>,
    /// How many lanes items have, as far as this process knows. A script that needs the keys of other lanes
    /// returns how many and changes nothing.
    lane_counts: Mutex<HashMap<ItemId, usize>>,
    /// How far drawn cohorts were served.
    cohorts: Mutex<HashMap<ItemId, CohortPosition>>,
    /// Whether new tickets are accepted.
    capacity: Capacity,
    /// Permits for batches of items; see `redis/items.rs`.
    item_batches: Semaphore,
    /// The generation of each partition when this process opened it; see `redis/generation.rs`.
    generations: Vec<String>,
}

/// The scripts that read liveness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum WindowKind {
    Admit,
    Sweep,
}

/// The reply of a script, or how many seconds of liveness it must read.
enum Windowed<T> {
    Done(T),
    NeedsWindow(u32),
}

impl RedisStore {
    /// Opens a store with the default limits; see [`RedisStore::open_with`].
    ///
    /// # Errors
    /// As [`RedisStore::open_with`].
    pub async fn open(
        redis: impl Into<RedisConfig>,
        partitions: u16,
        settings: Settings,
    ) -> Result<Self> {
        Self::open_with(redis, partitions, settings, StoreLimits::default()).await
    }

    /// Connects, checks version, eviction policy and partitions, and loads the scripts. `settings`
    /// apply only to a store without settings.
    ///
    /// # Errors
    /// If the server does not reply or cannot be used.
    pub async fn open_with(
        redis: impl Into<RedisConfig>,
        partitions: u16,
        settings: Settings,
        limits: StoreLimits,
    ) -> Result<Self> {
        let client = Arc::new(RedisClient::new(RedisUrl::parse(&redis.into())?));
        client.open(limits.allow_eviction).await?;
        let mut store = Self {
            lock: RedisLock::new(client.clone()),
            client,
            partitions,
            epoch: AtomicU64::new(0),
            initial_settings: settings,
            recovery_hold: RECOVERY_HOLD_MS,
            leave_limit: LeaveLimit::default(),
            windows: Mutex::new(HashMap::new()),
            cohorts: Mutex::new(HashMap::new()),
            lane_counts: Mutex::new(HashMap::new()),
            capacity: Capacity::new(limits),
            item_batches: Semaphore::new(items::MAX_ITEM_BATCHES),
            generations: Vec::new(),
        };
        store.init_settings().await?;
        store.generations = store.open_partitions().await?;
        Ok(store)
    }

    /// Sets how long a line that lost data admits no ticket.
    #[must_use]
    pub fn with_recovery_hold(mut self, recovery_hold: Millis) -> Self {
        self.recovery_hold = recovery_hold;
        self
    }

    /// Sets how often a user may leave a line and join it again.
    #[must_use]
    pub fn with_leave_limit(mut self, limit: LeaveLimit) -> Self {
        self.leave_limit = limit;
        self
    }

    async fn run<T: FromRedisValue>(&self, script: ScriptInvocation<'_>) -> Result<T> {
        self.client.run(script).await
    }

    async fn command<T: FromRedisValue>(&self, command: &::redis::Cmd) -> Result<T> {
        self.client.command(command).await
    }

    /// Returns the keys of the standard lane.
    fn keys(&self, id: &ItemId) -> LineKeys {
        self.lane_keys(id, Lane::STANDARD)
    }

    fn lane_keys(&self, id: &ItemId, lane: Lane) -> LineKeys {
        LineKeys::new(partition_of(id, self.partitions), id, lane)
    }

    /// Returns the invocation of a script of the line of a lane, with its keys.
    fn line_script(
        &self,
        id: &ItemId,
        lane: Lane,
        script: impl Fn(&Scripts) -> &scripts::Script,
    ) -> ScriptInvocation<'static> {
        self.lanes_script(id, lane, 0, script)
    }

    /// The same for a script that also gets the keys of all lanes: the standard one, and `lanes` others. With
    /// `lanes` 0 it gets none, as it does for an item without lanes.
    fn lanes_script(
        &self,
        id: &ItemId,
        lane: Lane,
        lanes: usize,
        script: impl Fn(&Scripts) -> &scripts::Script,
    ) -> ScriptInvocation<'static> {
        let mut invocation = script(scripts()).invocation();
        self.lane_keys(id, lane).all().iter().for_each(|key| {
            invocation.key(key);
        });
        let all = (0..=lanes).filter(|_| lanes > 0).filter_map(Lane::numbered);
        all.flat_map(|lane| self.lane_keys(id, lane).of_lane()).for_each(|key| {
            invocation.key(key);
        });
        invocation.arg(lane.index()).arg(if lanes > 0 { lanes + 1 } else { 0 });
        invocation
    }

    /// Returns the invocation of a script that gets the keys of every lane that an item may have.
    fn all_lanes_script(
        &self,
        id: &ItemId,
        script: impl Fn(&Scripts) -> &scripts::Script,
    ) -> ScriptInvocation<'static> {
        self.lanes_script(id, Lane::STANDARD, MAX_LANES, script)
    }

    /// Returns how many lanes an item had when a script last replied that.
    fn known_lanes(&self, id: &ItemId) -> usize {
        let lanes = self.lane_counts.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.get(id).copied().unwrap_or(0)
    }

    fn keep_lanes(&self, id: &ItemId, lanes: usize) {
        if lanes != self.known_lanes(id) {
            let mut known = self.lane_counts.lock().unwrap_or_else(PoisonError::into_inner);
            match lanes {
                0 => known.remove(id),
                lanes => known.insert(id.clone(), lanes),
            };
        }
    }

    /// Runs a leader's script that reads liveness. Its keys must name every slice it may read, but how many
    /// it reads depends on the policy in Redis. So the first call passes as many slices as were enough last
    /// time, and a second call follows if the script replies that it needs more.
    async fn with_liveness_window<T>(
        &self,
        id: &ItemId,
        kind: WindowKind,
        now: Millis,
        call: impl Fn(u64) -> ScriptInvocation<'static>,
        decode: impl Fn(Value) -> Result<Windowed<T>>,
    ) -> Result<T> {
        let window = (id.clone(), kind);
        let mut seconds = self.windows().get(&window).copied().unwrap_or(60);
        loop {
            let first = oldest_slice(now, seconds);
            let mut invocation = call(first);
            for slice in first..=slice_of(now) + 1 {
                invocation.key(self.keys(id).slice(slice));
            }
            match decode(self.run(invocation).await?)? {
                Windowed::Done(result) => return Ok(result),
                Windowed::NeedsWindow(more) => seconds = more,
            }
            self.windows().insert(window.clone(), seconds);
        }
    }

    fn windows(&self) -> std::sync::MutexGuard<'_, HashMap<(ItemId, WindowKind), u32>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_partitions(&self) -> impl Iterator<Item = PartitionKeys> {
        (0..self.partitions).map(PartitionKeys::new)
    }

    /// Returns the union of one set per partition, sorted.
    async fn members(&self, set: impl Fn(&PartitionKeys) -> String) -> Result<Vec<ItemId>> {
        let sets: Vec<_> = self.all_partitions().map(|partition| set(&partition)).collect();
        let sets = try_join_all(sets.iter().map(|set| self.members_of(set))).await?;
        let mut ids: Vec<_> = sets.into_iter().flatten().collect();
        ids.sort_unstable();
        Ok(ids)
    }

    async fn members_of(&self, set: &str) -> Result<Vec<ItemId>> {
        let names: Vec<String> = self.command(::redis::cmd("SMEMBERS").arg(set)).await?;
        names.iter().map(|name| reply::item_id(name)).collect()
    }
}

#[async_trait]
impl Store for RedisStore {
    fn partitions(&self) -> u16 {
        self.partitions
    }

    async fn ping(&self) -> Result<()> {
        // The key of the epoch is on the same server as the lease. Reading it also updates the
        // latest epoch that this process knows.
        self.observe_epoch().await
    }

    fn lock(&self) -> &dyn LockBackend {
        &self.lock
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("partitions", &self.partitions).finish_non_exhaustive()
    }
}
