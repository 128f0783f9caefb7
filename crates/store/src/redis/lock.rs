//! The lock behind the lease, on whichever server has its key now.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::cmd;
use rslock::{Lock, LockManager};

use super::keys;
use super::link::Link;
use super::scripts::scripts;
use crate::lease::Renewal;
use crate::{Epoch, Reign, Result};

/// A lock manager that does not answer for so long is not asked again: rslock keeps a connection
/// on which nothing is heard.
const DOUBTFUL: Duration = Duration::from_millis(400);

/// The length of a holder's random value, as rslock makes it.
const VALUE_BYTES: usize = 20;

/// The one lock there is. It follows the link: after a fail-over it is asked for on the new master.
#[derive(Debug, Clone)]
pub struct RedisLock(Arc<Link>);

impl RedisLock {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self(link)
    }

    /// Tries once; none if somebody holds it or the server is away.
    pub(crate) async fn try_lock(&self, ttl: Duration) -> Option<Lock> {
        let asked = Instant::now();
        let manager = self.0.locks().await?;
        // `lock` tries a bounded number of times; `acquire` would wait for ever.
        let lock = manager.lock(keys::lease().as_bytes(), ttl).await.ok();
        if lock.is_some() {
            return lock;
        }
        if asked.elapsed() > DOUBTFUL {
            self.0.doubt_locks().await;
            return None;
        }
        self.lock_full_server(manager, ttl).await
    }

    /// Tries once by a script that also works at `maxmemory`: there Redis refuses the plain `SET` of
    /// rslock, which does not tell that from a lock that is taken. Key and value are rslock's, so
    /// that either kind of attempt excludes the other.
    async fn lock_full_server(&self, lock_manager: LockManager, ttl: Duration) -> Option<Lock> {
        let val: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(VALUE_BYTES).collect();
        let millis = u64::try_from(ttl.as_millis()).ok()?;
        let mut acquire = scripts().acquire_lock.prepare_invoke();
        acquire.key(keys::lease()).arg(val.as_slice()).arg(millis);
        let taken = self.0.run::<bool>(acquire).await.ok()?;
        let (resource, validity_time) = (keys::lease().into(), usize::try_from(millis).ok()?);
        taken.then_some(Lock { resource, val, validity_time, lock_manager })
    }

    /// Holds it for another while. Not by rslock's own `extend`: that gives the lock back if it is
    /// not answered within half a second, and a leader would fall over every hiccup of the store.
    pub(crate) async fn renew(&self, lock: &Lock, ttl: Duration) -> Renewal {
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let mut renew = scripts().renew.prepare_invoke();
        renew.key(keys::lease()).arg(lock.val.as_slice()).arg(millis);
        match self.0.run::<bool>(renew).await {
            Ok(true) => Renewal::Held,
            Ok(false) => Renewal::Lost,
            Err(_) => Renewal::Unanswered,
        }
    }

    pub(crate) async fn announce(&self, reign: &Reign) -> Result<()> {
        let mut announce = scripts().announce.prepare_invoke();
        announce.key(keys::leader()).arg(reign.epoch.0).arg(&reign.leader).arg(reign.since);
        self.0.run::<u8>(announce).await.map(drop)
    }

    /// Whoever announced the latest term, while somebody holds the lock.
    pub(crate) async fn reign(&self) -> Result<Option<Reign>> {
        if !self.0.command::<bool>(cmd("EXISTS").arg(keys::lease())).await? {
            return Ok(None);
        }
        let mut read = cmd("HMGET");
        read.arg(keys::leader()).arg("name").arg("epoch").arg("since");
        let (leader, epoch, since): (Option<String>, Option<u64>, Option<u64>) =
            self.0.command(&read).await?;
        Ok(leader.zip(epoch).zip(since).map(|((leader, epoch), since)| Reign {
            leader,
            epoch: Epoch(epoch),
            since,
        }))
    }

    pub(crate) async fn release(&self, lock: &Lock) {
        if let Some(manager) = self.0.locks().await {
            manager.unlock(lock).await;
        }
    }
}
