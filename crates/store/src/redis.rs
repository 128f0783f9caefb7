//! The store on Redis: one Lua script per state change.
//!
//! | file | what lives there |
//! |---|---|
//! | `redis/keys.rs` | every key, hash-tagged by partition; nothing else knows what a key looks like |
//! | `redis/scripts.rs` + `scripts/*.lua` | the registry of scripts, preloaded at connect |
//! | `redis/reply.rs` | what scripts answer, decoded into the words of the crate |
//! | `redis/fields.rs` | an item as a hash |
//! | `redis/verbs.rs` | every verb of the store, as the script or command behind it |
//! | `redis/items.rs` | items, changed in batches |
//! | `redis/address.rs` | the three ways people run Redis, as addresses |
//! | `redis/link.rs` | the way of every command and script, with its deadline |
//! | `redis/server.rs`, `circuit.rs`, `backoff.rs` | one server: asked, given up, tried again |
//! | `redis/connect.rs`, `sentinel.rs`, `cluster.rs` | where servers are found |
//! | `redis/failure.rs`, `version.rs` | what an error means, and what a server must be |
//! | `redis/generation.rs` | which generation of data this process knows |
//! | `redis/capacity.rs` | whether new tickets are taken: memory and waiting tickets, measured once per second |
//! | `redis/lock.rs`, `epoch.rs` | the lock behind the lease, and the epochs of its terms |
//!
//! Plain commands are used only for reading and for the outbox's stream.

mod address;
pub(crate) mod backoff;
mod capacity;
mod circuit;
mod cluster;
mod connect;
mod crowd;
mod epoch;
mod failure;
mod fields;
mod generation;
mod items;
mod keys;
mod link;
mod lock;
mod memory;
mod reply;
mod scripts;
mod sentinel;
mod server;
mod verbs;
mod version;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use ::redis::{FromRedisValue, Value};
use daegi_domain::liveness::{oldest_slice, slice_of};
use daegi_domain::{
    EndReason, ItemId, Millis, Number, RECOVERY_HOLD_MS, Settings, StoreLimits, UserId,
};
use futures_util::future::try_join_all;
use tokio::sync::Semaphore;

use self::address::Address;
use self::capacity::Capacity;
use self::keys::{LineKeys, PartitionKeys};
use self::link::Link;
pub(crate) use self::lock::RedisLock;
use self::scripts::{ScriptInvocation, Scripts, scripts};
use crate::lease::Leases;
use crate::{Closing, Error, LEAVE_WINDOW_MS, LeaveLimit, Result, partition_of};

/// All lines of a waiting room, in Redis.
pub struct RedisStore {
    link: Arc<Link>,
    leases: Leases,
    partitions: u16,
    /// The latest epoch this process has seen; see `redis/epoch.rs`.
    epoch: AtomicU64,
    /// What a store without settings starts with: a new one, or one that lost its data.
    first: Settings,
    /// How long a line that lost data lets nobody in.
    hold: Millis,
    leave_limit: LeaveLimit,
    /// How far back a line's scripts look for liveness, as far as this process has learned. A
    /// script that needs more says so and does nothing; see [`RedisStore::with_slices`].
    lookback: Mutex<HashMap<(ItemId, Lookback), u32>>,
    /// Whether new tickets are taken.
    capacity: Capacity,
    /// Turns for batches of items; see `redis/items.rs`.
    item_batches: Semaphore,
    /// The generation of each partition when this process opened it; see `redis/generation.rs`.
    generations: Vec<String>,
}

/// Which script looks back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Lookback {
    Admit,
    Sweep,
}

/// A script's answer, or how many seconds of liveness it needs to see.
enum Sliced<T> {
    Done(T),
    Needs(u32),
}

impl RedisStore {
    /// Opens a store with the default limits; see [`RedisStore::open_with`].
    ///
    /// # Errors
    /// As [`RedisStore::open_with`].
    pub async fn open(url: &str, partitions: u16, settings: Settings) -> Result<Self> {
        Self::open_with(url, partitions, settings, StoreLimits::default()).await
    }

    /// Connects, checks version, eviction policy and partitions, loads the scripts. `settings`
    /// count only on the first start of a store.
    ///
    /// # Errors
    /// If the server does not answer or cannot be used.
    pub async fn open_with(
        url: &str,
        partitions: u16,
        settings: Settings,
        limits: StoreLimits,
    ) -> Result<Self> {
        let link = Arc::new(Link::new(Address::parse(url)?));
        link.open(limits.allow_eviction).await?;
        let capacity = Capacity::new(limits);
        let leases = Leases::Redis(RedisLock::new(link.clone()));
        let (epoch, lookback) = (AtomicU64::new(0), Mutex::new(HashMap::new()));
        let item_batches = Semaphore::new(items::BATCHES);
        let (first, hold) = (settings, RECOVERY_HOLD_MS);
        let (generations, leave_limit) = (Vec::new(), LeaveLimit::default());
        let mut store = Self {
            link,
            leases,
            partitions,
            epoch,
            first,
            hold,
            leave_limit,
            lookback,
            capacity,
            item_batches,
            generations,
        };
        store.settle().await?;
        store.generations = store.open_partitions().await?;
        Ok(store)
    }

    /// The same, but a line that lost data lets nobody in for so long.
    #[must_use]
    pub fn with_recovery_hold(mut self, hold: Millis) -> Self {
        self.hold = hold;
        self
    }

    /// The same with another limit of leaves.
    #[must_use]
    pub fn with_leave_limit(mut self, limit: LeaveLimit) -> Self {
        self.leave_limit = limit;
        self
    }

    /// Writes the settings where there are none, and compares the partitions.
    async fn settle(&self) -> Result<()> {
        let mut open = scripts().open.prepare_invoke();
        open.key(keys::settings()).arg(self.partitions);
        open.arg(self.first.token_count_to_move).arg(self.first.tick_ms);
        match self.run(open).await? {
            stored if stored == self.partitions => Ok(()),
            stored => Err(Error::Partitions { stored, given: self.partitions }),
        }
    }

    /// The settings with their revision; those of the first start if the store lost them.
    async fn revised_settings(&self) -> Result<(Settings, u64)> {
        if let Some(stored) = self.stored_settings().await? {
            return Ok(stored);
        }
        self.settle().await?;
        self.stored_settings().await?.ok_or_else(|| Error::corrupt("settings that do not stay"))
    }

    async fn stored_settings(&self) -> Result<Option<(Settings, u64)>> {
        let mut read = ::redis::cmd("HMGET");
        read.arg(keys::settings()).arg("tokenCountToMove").arg("tickMs").arg("revision");
        let (token_count_to_move, tick_ms, revision): (Option<u32>, Option<u32>, Option<u64>) =
            self.command(&read).await?;
        let stored = token_count_to_move.zip(tick_ms);
        Ok(stored.map(|(token_count_to_move, tick_ms)| {
            (Settings { token_count_to_move, tick_ms }, revision.unwrap_or(0))
        }))
    }

    /// Writes the settings into every partition whose copy is older, and returns them.
    async fn copy_settings_to_partitions(&self) -> Result<Settings> {
        let (settings, revision) = self.revised_settings().await?;
        let copies = self.all_partitions().map(|partition| {
            let mut copy = scripts().copy_settings.prepare_invoke();
            copy.key(partition.settings_copy).arg(revision).arg(settings.token_count_to_move);
            self.run::<()>(copy)
        });
        try_join_all(copies).await?;
        Ok(settings)
    }

    async fn run<T: FromRedisValue>(&self, script: ScriptInvocation<'_>) -> Result<T> {
        self.link.run(script).await
    }

    async fn command<T: FromRedisValue>(&self, command: &::redis::Cmd) -> Result<T> {
        self.link.command(command).await
    }

    fn keys(&self, id: &ItemId) -> LineKeys {
        LineKeys::new(partition_of(id, self.partitions), id)
    }

    /// A script of a line with its keys.
    fn on_line(
        &self,
        id: &ItemId,
        script: impl Fn(&Scripts) -> &scripts::Script,
    ) -> ScriptInvocation<'static> {
        let mut invocation = script(scripts()).prepare_invoke();
        self.keys(id).all().iter().for_each(|key| {
            invocation.key(key);
        });
        invocation
    }

    /// Runs a leader's script that looks back in time. Its keys must name every slice it may
    /// read, but how far it reads is up to the policy in Redis: so it is called with what was
    /// enough last time, and again if it answers that this was too little.
    async fn with_slices<T>(
        &self,
        id: &ItemId,
        which: Lookback,
        now: Millis,
        call: impl Fn(u64) -> ScriptInvocation<'static>,
        decode: impl Fn(Value) -> Result<Sliced<T>>,
    ) -> Result<T> {
        let known = (id.clone(), which);
        let mut seconds = self.lookback().get(&known).copied().unwrap_or(60);
        loop {
            let first = oldest_slice(now, seconds);
            let mut invocation = call(first);
            for slice in first..=slice_of(now) + 1 {
                invocation.key(self.keys(id).slice(slice));
            }
            match decode(self.run(invocation).await?)? {
                Sliced::Done(answer) => return Ok(answer),
                Sliced::Needs(more) => seconds = more,
            }
            self.lookback().insert(known.clone(), seconds);
        }
    }

    fn lookback(&self) -> std::sync::MutexGuard<'_, HashMap<(ItemId, Lookback), u32>> {
        self.lookback.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_partitions(&self) -> impl Iterator<Item = PartitionKeys> {
        (0..self.partitions).map(PartitionKeys::new)
    }

    /// The union of one set per partition.
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

    async fn close(
        &self,
        id: &ItemId,
        user: &UserId,
        number: Number,
        reason: EndReason,
        which: &str,
        now: Millis,
    ) -> Result<Closing> {
        // Only a user who leaves pays for it; an order that is closed ends entries alone.
        let leave_cost_ms = if which == "any" { self.leave_limit.cost_ms() } else { 0 };
        let mut script = self.on_line(id, |scripts| &scripts.close);
        script.arg(now).arg(user.as_str()).arg(number.0).arg(reason.code()).arg(which);
        script.arg(self.hold);
        self.pass_generation(&mut script, id);
        script.arg(leave_cost_ms).arg(LEAVE_WINDOW_MS);
        reply::closing(&self.run::<String>(script).await?)
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("partitions", &self.partitions).finish_non_exhaustive()
    }
}
