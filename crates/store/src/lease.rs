//! Who leads.
//!
//! The lock is rslock's; this wrapper adds what it lacks: a bounded attempt (its `acquire` waits
//! for ever), renewal at a third of the TTL, a token that is cancelled when the lease is lost, and
//! an epoch. The lock only keeps leaders from getting in each other's way; it is the epoch,
//! checked inside every script, that makes a leader who lost the lock harmless.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use daegi_domain::Millis;
use rslock::Lock;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::warn;

use crate::redis::RedisLock;
use crate::{Epoch, Result, Store};

/// The lock a store offers.
#[derive(Debug)]
pub enum Leases {
    /// One process: whoever asks first, until released or expired.
    Memory(MemoryLock),
    /// One lock in Redis.
    Redis(RedisLock),
}

/// The memory store's lock: who holds it (a plain ticket) and until when.
#[derive(Debug, Default)]
pub struct MemoryLock(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    tickets: u64,
    holder: Option<(u64, Instant)>,
    reign: Option<Reign>,
}

/// Whose term it is, for people who ask a standby.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reign {
    /// The name of the replica that leads.
    pub leader: String,
    /// The epoch of its term.
    pub epoch: Epoch,
    /// When the term began, by the leader's clock.
    pub since: Millis,
}

/// A term of leadership. Ends by [`Lease::release`], or when the lock cannot be renewed in time.
#[derive(Debug)]
pub struct Lease {
    hold: Hold,
    epoch: Epoch,
    ttl: Duration,
    lost: CancellationToken,
    _cancel_on_drop: DropGuard,
}

#[derive(Debug)]
enum Hold {
    Memory { lock: Arc<Mutex<Held>>, ticket: u64 },
    Redis { locks: RedisLock, lock: Box<Lock> },
}

/// What came of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// It is ours for another while.
    Held,
    /// It is not ours any more.
    Lost,
    /// Nobody has answered; it is ours until it runs out.
    Unanswered,
}

impl Lease {
    /// Tries once to lead; none if somebody else does.
    pub async fn try_acquire(
        store: &dyn Store,
        ttl: Duration,
        now: Millis,
    ) -> Result<Option<Self>> {
        let Some(hold) = store.leases().try_lock(ttl).await else {
            // rslock does not tell a lock that is taken from a server that is away.
            return store.ping().await.map(|()| None);
        };
        let lost = CancellationToken::new();
        match store.begin_term(now).await {
            Ok(epoch) => {
                let _cancel_on_drop = lost.clone().drop_guard();
                Ok(Some(Self { hold, epoch, ttl, lost, _cancel_on_drop }))
            }
            Err(error) => {
                hold.release().await;
                Err(error)
            }
        }
    }

    /// The epoch of this term.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Cancelled when the lease is lost or released.
    pub fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Keeps the lease alive until `stop` is cancelled (then it is released at once) or it cannot
    /// be renewed before it runs out (then `lost` is cancelled).
    pub async fn hold(mut self, stop: CancellationToken) {
        let (mut good_until, mut pause) = (Instant::now() + self.ttl, self.ttl / 3);
        loop {
            tokio::select! {
                () = stop.cancelled() => return self.release().await,
                () = self.lost.cancelled() => return self.release().await,
                () = tokio::time::sleep(pause) => {}
            }
            let asked = Instant::now();
            let left = good_until.saturating_duration_since(asked);
            match tokio::time::timeout(left, self.hold.renew(self.ttl)).await {
                Ok(Renewal::Held) => (good_until, pause) = (asked + self.ttl, self.ttl / 3),
                // It is still ours: a store that hiccups does not depose anybody.
                Ok(Renewal::Unanswered) if Instant::now() < good_until => pause = self.ttl / 20,
                Ok(Renewal::Unanswered | Renewal::Lost) | Err(_) => {
                    warn!(epoch = self.epoch.0, "lease lost");
                    return self.release().await;
                }
            }
        }
    }

    /// Gives the lease back, so that another replica leads at once.
    pub async fn release(self) {
        self.lost.cancel();
        self.hold.release().await;
    }
}

impl Leases {
    /// Tells the other replicas who leads; a later term is not overwritten.
    pub async fn announce(&self, reign: &Reign) -> Result<()> {
        match self {
            Self::Memory(lock) => {
                lock.announce(reign);
                Ok(())
            }
            Self::Redis(locks) => locks.announce(reign).await,
        }
    }

    /// Whose term it is: the latest that was announced, while somebody holds the lock. Between a
    /// lock that is taken and its announcement this is the term before, for a moment.
    pub async fn reign(&self) -> Result<Option<Reign>> {
        match self {
            Self::Memory(lock) => Ok(lock.reign()),
            Self::Redis(locks) => locks.reign().await,
        }
    }

    async fn try_lock(&self, ttl: Duration) -> Option<Hold> {
        match self {
            Self::Memory(lock) => lock.try_lock(ttl),
            Self::Redis(locks) => {
                let lock = Box::new(locks.try_lock(ttl).await?);
                Some(Hold::Redis { locks: locks.clone(), lock })
            }
        }
    }
}

impl MemoryLock {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self, reign: &Reign) {
        let mut held = self.held();
        if held.reign.as_ref().is_none_or(|latest| latest.epoch <= reign.epoch) {
            held.reign = Some(reign.clone());
        }
    }

    fn reign(&self) -> Option<Reign> {
        let held = self.held();
        let is_held = held.holder.is_some_and(|(_, until)| until > Instant::now());
        held.reign.clone().filter(|_| is_held)
    }

    fn try_lock(&self, ttl: Duration) -> Option<Hold> {
        let mut held = self.held();
        if held.holder.is_some_and(|(_, until)| until > Instant::now()) {
            return None;
        }
        held.tickets += 1;
        let ticket = held.tickets;
        held.holder = Some((ticket, Instant::now() + ttl));
        Some(Hold::Memory { lock: self.0.clone(), ticket })
    }
}

impl Hold {
    async fn renew(&mut self, ttl: Duration) -> Renewal {
        match self {
            Self::Memory { lock, ticket } => {
                let mut held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                match held.holder {
                    Some((holder, _)) if holder == *ticket => {
                        held.holder = Some((*ticket, Instant::now() + ttl));
                        Renewal::Held
                    }
                    _ => Renewal::Lost,
                }
            }
            Self::Redis { locks, lock } => locks.renew(lock, ttl).await,
        }
    }

    async fn release(self) {
        match self {
            Self::Memory { lock, ticket } => {
                let mut held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                if held.holder.is_some_and(|(holder, _)| holder == ticket) {
                    held.holder = None;
                }
            }
            Self::Redis { locks, lock } => locks.release(&lock).await,
        }
    }
}
