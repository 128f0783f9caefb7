//! The lock of the lease, on the server that has its key.
//!
//! rslock implements the lock. This file adds what it lacks: one bounded attempt (its `acquire` waits
//! without limit), and a renewal that does not release the lock when a reply is late.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::cmd;
use async_trait::async_trait;
use rslock::{Lock, LockManager};

use super::client::RedisClient;
use super::keys;
use super::scripts::scripts;
use crate::{CurrentLeader, Epoch, HeldLock, LockBackend, Renewal, Result};

/// Duration of a failed attempt after which the connection is discarded: 400 ms. rslock itself
/// keeps a connection that gets no replies.
const LOCK_TIMEOUT: Duration = Duration::from_millis(400);

/// Length of a holder's random value, as rslock generates it.
const VALUE_BYTES: usize = 20;

/// The lock in Redis. After a fail-over it is taken on the new master.
#[derive(Debug, Clone)]
pub(super) struct RedisLock(Arc<RedisClient>);

/// The lock while this process holds it.
#[derive(Debug)]
struct HeldRedisLock {
    client: Arc<RedisClient>,
    lock: Lock,
}

impl RedisLock {
    pub(super) fn new(client: Arc<RedisClient>) -> Self {
        Self(client)
    }

    async fn try_take(&self, ttl: Duration) -> Option<Lock> {
        let started = Instant::now();
        let manager = self.0.lock_manager().await?;
        // `lock` tries a bounded number of times; `acquire` waits without limit.
        let lock = manager.lock(keys::lease().as_bytes(), ttl).await.ok();
        if lock.is_some() {
            return lock;
        }
        if started.elapsed() > LOCK_TIMEOUT {
            self.0.discard_lock_connection().await;
            return None;
        }
        self.lock_full_server(manager, ttl).await
    }

    /// Tries once with a script that works at `maxmemory`, too: there Redis refuses the plain `SET` of
    /// rslock, which rslock does not distinguish from a lock that is held. Key and value are rslock's, so
    /// that either kind of attempt excludes the other.
    async fn lock_full_server(&self, lock_manager: LockManager, ttl: Duration) -> Option<Lock> {
        let val: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(VALUE_BYTES).collect();
        let millis = u64::try_from(ttl.as_millis()).ok()?;
        let mut acquire = scripts().acquire_lock.invocation();
        acquire.key(keys::lease()).arg(val.as_slice()).arg(millis);
        let taken = self.0.run::<bool>(acquire).await.ok()?;
        if taken {
            // rslock connects with the certificates and the password of its creation. The next manager has
            // current ones, and can release the lock.
            self.0.discard_lock_connection().await;
        }
        let (resource, validity_time) = (keys::lease().into(), usize::try_from(millis).ok()?);
        taken.then_some(Lock { resource, val, validity_time, lock_manager })
    }
}

#[async_trait]
impl LockBackend for RedisLock {
    async fn try_lock(&self, ttl: Duration) -> Option<Box<dyn HeldLock>> {
        let lock = self.try_take(ttl).await?;
        Some(Box::new(HeldRedisLock { client: self.0.clone(), lock }))
    }

    async fn publish_leader(&self, leader: &CurrentLeader) -> Result<()> {
        let mut publish = scripts().publish_leader.invocation();
        publish.key(keys::leader()).arg(leader.epoch.0).arg(&leader.leader).arg(leader.since);
        self.0.run::<u8>(publish).await.map(drop)
    }

    async fn current_leader(&self) -> Result<Option<CurrentLeader>> {
        if !self.0.command::<bool>(cmd("EXISTS").arg(keys::lease())).await? {
            return Ok(None);
        }
        let mut read = cmd("HMGET");
        read.arg(keys::leader()).arg("name").arg("epoch").arg("since");
        let (leader, epoch, since): (Option<String>, Option<u64>, Option<u64>) =
            self.0.command(&read).await?;
        Ok(leader.zip(epoch).zip(since).map(|((leader, epoch), since)| CurrentLeader {
            leader,
            epoch: Epoch(epoch),
            since,
        }))
    }
}

#[async_trait]
impl HeldLock for HeldRedisLock {
    /// Renews with a script instead of rslock's `extend`, which releases the lock if the reply takes
    /// longer than half a second: a short outage of the store would end the term.
    async fn renew(&mut self, ttl: Duration) -> Renewal {
        let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let mut renew = scripts().renew_lock.invocation();
        renew.key(keys::lease()).arg(self.lock.val.as_slice()).arg(millis);
        match self.client.run::<bool>(renew).await {
            Ok(true) => Renewal::Held,
            Ok(false) => Renewal::Lost,
            Err(_) => Renewal::NoReply,
        }
    }

    async fn release(self: Box<Self>) {
        if let Some(manager) = self.client.lock_manager().await {
            manager.unlock(&self.lock).await;
        }
    }
}
