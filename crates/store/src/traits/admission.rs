use std::fmt::Debug;

use async_trait::async_trait;
use daegi_domain::{ItemId, Lane, Millis, Number};

use crate::Result;
use crate::types::{Admission, Epoch, Expiry, Sweep};

/// What the leader does. Every method except [`AdmissionStore::begin_term`] and the list of lines fails
/// with [`crate::Error::StaleEpoch`] if another term has begun.
#[async_trait]
pub trait AdmissionStore: Debug + Send + Sync + 'static {
    /// Begins a term: a new epoch, which every partition stores. It is above every epoch that this
    /// process knows and above `now`, so that a store that lost the counter never issues an epoch
    /// twice. Only the holder of the lease may call it.
    async fn begin_term(&self, now: Millis) -> Result<Epoch>;

    /// Lists the lines of a partition that need the leader, reserved ones included.
    async fn active_lines_in(&self, partition: u16) -> Result<Vec<ItemId>>;

    /// Admits up to `quota` tickets, at most [`crate::MAX_USERS_PER_CALL`] per call: returning ones
    /// first, then from the front of the line. Lanes share the quota by their weights among those in which a
    /// ticket may be admitted ([`daegi_domain::lane::share`]). While the partition's outbox holds `outbox_max`
    /// admissions, admits none and marks the line as held. Each admission has one event. Calls with
    /// the same `now` are one round. A round that begins less than `min_interval` after the last
    /// one admits none, even if another leader ran the last one.
    async fn admit(
        &self,
        epoch: Epoch,
        id: &ItemId,
        quota: u32,
        min_interval: Millis,
        outbox_max: u64,
        now: Millis,
    ) -> Result<Admission>;

    /// Ends entries that expired and tickets that missed their turn and can no longer return, at
    /// most [`crate::MAX_USERS_PER_CALL`] per call. Removes old ends and changes that the front has
    /// passed. Detects a fail-over, as `join` does. For the standard lane, also deactivates an item none of
    /// whose lanes needs the leader.
    async fn expire(&self, epoch: Epoch, id: &ItemId, lane: Lane, now: Millis) -> Result<Expiry>;

    /// Removes tickets whose users were absent too long from the line; examines up to
    /// [`crate::MAX_USERS_PER_CALL`] tickets from `cursor` on.
    async fn sweep(
        &self,
        epoch: Epoch,
        id: &ItemId,
        lane: Lane,
        cursor: Number,
        now: Millis,
    ) -> Result<Sweep>;
}
