//! Leader election.
//!
//! [`Lease`] is a held lock with renewal at a third of its TTL, a token that is cancelled when the
//! lease is lost, and an epoch. The lock only keeps leaders from working at the same time. Every
//! script of a leader checks the epoch, so that a leader that lost the lock changes nothing.

use std::time::{Duration, Instant};

use daegi_domain::Millis;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::warn;

use crate::{Epoch, HeldLock, Renewal, Result, Store};

/// A term of leadership. Ends with [`Lease::release`], or when the lock cannot be renewed in time.
#[derive(Debug)]
pub struct Lease {
    lock: Box<dyn HeldLock>,
    epoch: Epoch,
    ttl: Duration,
    lost: CancellationToken,
    _cancel_on_drop: DropGuard,
}

impl Lease {
    /// Tries once to lead. Returns `None` if another replica leads.
    ///
    /// # Errors
    /// If the store does not reply.
    pub async fn try_acquire(
        store: &dyn Store,
        ttl: Duration,
        now: Millis,
    ) -> Result<Option<Self>> {
        let Some(lock) = store.lock().try_lock(ttl).await else {
            // The backend does not distinguish a lock that is held from a server without a reply.
            return store.ping().await.map(|()| None);
        };
        let lost = CancellationToken::new();
        match store.begin_term(now).await {
            Ok(epoch) => {
                let _cancel_on_drop = lost.clone().drop_guard();
                Ok(Some(Self { lock, epoch, ttl, lost, _cancel_on_drop }))
            }
            Err(error) => {
                lock.release().await;
                Err(error)
            }
        }
    }

    /// Returns the epoch of this term.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns a token that is cancelled when the lease is lost or released.
    pub fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Renews the lease until `stop` is cancelled (then the lease is released immediately) or it cannot
    /// be renewed before it expires (then `lost` is cancelled).
    pub async fn hold(mut self, stop: CancellationToken) {
        let (mut expires_at, mut interval) = (Instant::now() + self.ttl, self.ttl / 3);
        loop {
            tokio::select! {
                () = stop.cancelled() => return self.release().await,
                () = self.lost.cancelled() => return self.release().await,
                () = tokio::time::sleep(interval) => {}
            }
            let sent = Instant::now();
            let remaining = expires_at.saturating_duration_since(sent);
            match tokio::time::timeout(remaining, self.lock.renew(self.ttl)).await {
                Ok(Renewal::Held) => (expires_at, interval) = (sent + self.ttl, self.ttl / 3),
                // The lease has not expired: retry sooner, so that a short outage of the store does
                // not end the term.
                Ok(Renewal::NoReply) if Instant::now() < expires_at => interval = self.ttl / 20,
                Ok(Renewal::NoReply | Renewal::Lost) | Err(_) => {
                    warn!(epoch = self.epoch.0, "lease lost");
                    return self.release().await;
                }
            }
        }
    }

    /// Releases the lease, so that another replica can lead immediately.
    pub async fn release(self) {
        self.lost.cancel();
        self.lock.release().await;
    }
}
