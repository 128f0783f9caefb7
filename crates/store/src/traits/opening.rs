use std::fmt::Debug;

use async_trait::async_trait;
use daegi_domain::{CohortRange, Drawn, ItemId, Millis, Number, UserId};

use crate::Result;
use crate::types::{BeaconOutcome, Epoch};

/// Openings and draws. The steps of the leader fail with [`crate::Error::StaleEpoch`] if another term has
/// begun.
#[async_trait]
pub trait OpeningStore: Debug + Send + Sync + 'static {
    /// Fixes the cohort of a line whose opening is due and has the order `draw`: all numbers from the
    /// lowest waiting one to the tail. Returns the cohort, also if it was fixed before; `None` if no draw
    /// is due.
    async fn freeze_cohort(
        &self,
        epoch: Epoch,
        id: &ItemId,
        now: Millis,
    ) -> Result<Option<CohortRange>>;

    /// Fixes the Merkle root of a fixed cohort that waits for the round of its beacon. Returns the root, also
    /// if it was fixed before; `None` if there is no such cohort.
    async fn fix_root(
        &self,
        epoch: Epoch,
        id: &ItemId,
        root: &[u8; 32],
        now: Millis,
    ) -> Result<Option<[u8; 32]>>;

    /// Stores the signature of a round for the draw that names it. The caller has verified the signature.
    async fn put_beacon(
        &self,
        id: &ItemId,
        round: u64,
        signature: &[u8; 48],
        now: Millis,
    ) -> Result<BeaconOutcome>;

    /// Opens a line whose opening is due, with one event. A line with the order `draw` needs a fixed cohort
    /// and `drawn`; with a beacon, also the fixed root and the signature. Returns whether this call opened the
    /// line.
    async fn open_line(
        &self,
        epoch: Epoch,
        id: &ItemId,
        drawn: Option<Drawn>,
        now: Millis,
    ) -> Result<bool>;

    /// Records that a line closed, with one event. Returns whether this call recorded it.
    async fn close_line(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<bool>;

    /// Returns at most `limit` waiting tickets from this number on, in order of their numbers.
    async fn waiting_from(
        &self,
        id: &ItemId,
        from: Number,
        limit: u32,
    ) -> Result<Vec<(UserId, Number)>>;

    /// Stores leaves of a cohort's Merkle tree, from the leaf of index `first` on. They are kept for
    /// [`crate::LEAVES_RETENTION_MS`].
    async fn put_leaves(
        &self,
        id: &ItemId,
        root: &[u8; 32],
        first: u64,
        leaves: &[[u8; 32]],
    ) -> Result<()>;

    /// Returns at most [`crate::LEAVES_PER_CALL`] leaves of the tree with this root, from index `first` on;
    /// none past the end, or if they are not stored any more.
    async fn leaves(&self, id: &ItemId, root: &[u8; 32], first: u64) -> Result<Vec<[u8; 32]>>;
}
