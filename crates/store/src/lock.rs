//! The lock that elects the leader.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use daegi_domain::Millis;

use crate::{Epoch, Result};

/// A lock that one process holds at a time, and the record of the current leader.
#[async_trait]
pub trait LockBackend: Debug + Send + Sync + 'static {
    /// Tries once to take the lock for `ttl`. Returns `None` if another process holds it, or if the
    /// backend does not reply.
    async fn try_lock(&self, ttl: Duration) -> Option<Box<dyn HeldLock>>;

    /// Publishes the leader for the other replicas. Does not overwrite a later term.
    async fn publish_leader(&self, leader: &CurrentLeader) -> Result<()>;

    /// Returns the latest published leader while the lock is held, otherwise `None`. Between a new
    /// holder's `try_lock` and its `publish_leader` this is the previous leader.
    async fn current_leader(&self) -> Result<Option<CurrentLeader>>;
}

/// A lock that this process took.
#[async_trait]
pub trait HeldLock: Debug + Send + Sync + 'static {
    /// Extends the lock to `ttl` from now.
    async fn renew(&mut self, ttl: Duration) -> Renewal;

    /// Releases the lock if this process still holds it.
    async fn release(self: Box<Self>);
}

/// The result of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The lock is held for another TTL.
    Held,
    /// Another process holds the lock, or it expired.
    Lost,
    /// The backend did not reply. The lock is held until it expires.
    NoReply,
}

/// The replica that leads, which standbys report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentLeader {
    /// The name of the replica that leads.
    pub leader: String,
    /// The epoch of its term.
    pub epoch: Epoch,
    /// When the term began, by the leader's clock.
    pub since: Millis,
}

/// The lock of a memory store.
#[derive(Debug, Default)]
pub struct MemoryLock(SharedLockState);

/// A lock that this process took. It is held while `guard_id` is the id of the current holder.
#[derive(Debug)]
struct HeldMemoryLock {
    state: SharedLockState,
    guard_id: u64,
}

#[derive(Debug, Clone, Default)]
struct SharedLockState(Arc<Mutex<MemoryLockState>>);

#[derive(Debug, Default)]
struct MemoryLockState {
    last_guard_id: u64,
    /// The guard id of the holder, and until when it holds the lock.
    holder: Option<(u64, Instant)>,
    leader: Option<CurrentLeader>,
}

impl SharedLockState {
    fn lock(&self) -> MutexGuard<'_, MemoryLockState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryLockState {
    fn is_held(&self) -> bool {
        self.holder.is_some_and(|(_, until)| until > Instant::now())
    }

    fn is_held_by(&self, guard_id: u64) -> bool {
        self.holder.is_some_and(|(holder, _)| holder == guard_id)
    }
}

#[async_trait]
impl LockBackend for MemoryLock {
    async fn try_lock(&self, ttl: Duration) -> Option<Box<dyn HeldLock>> {
        let mut state = self.0.lock();
        if state.is_held() {
            return None;
        }
        state.last_guard_id += 1;
        let guard_id = state.last_guard_id;
        state.holder = Some((guard_id, Instant::now() + ttl));
        Some(Box::new(HeldMemoryLock { state: self.0.clone(), guard_id }))
    }

    async fn publish_leader(&self, leader: &CurrentLeader) -> Result<()> {
        let mut state = self.0.lock();
        if state.leader.as_ref().is_none_or(|latest| latest.epoch <= leader.epoch) {
            state.leader = Some(leader.clone());
        }
        Ok(())
    }

    async fn current_leader(&self) -> Result<Option<CurrentLeader>> {
        let state = self.0.lock();
        Ok(state.leader.clone().filter(|_| state.is_held()))
    }
}

#[async_trait]
impl HeldLock for HeldMemoryLock {
    async fn renew(&mut self, ttl: Duration) -> Renewal {
        let mut state = self.state.lock();
        if !state.is_held_by(self.guard_id) {
            return Renewal::Lost;
        }
        state.holder = Some((self.guard_id, Instant::now() + ttl));
        Renewal::Held
    }

    async fn release(self: Box<Self>) {
        let mut state = self.state.lock();
        if state.is_held_by(self.guard_id) {
            state.holder = None;
        }
    }
}
