use std::fmt::Debug;

use async_trait::async_trait;
use daegi_domain::pace::origin::OriginReport;
use daegi_domain::{ItemId, Millis, PaceState};

use crate::Result;
use crate::types::Epoch;

/// The adaptive pace of lines: its state, and what pods know of the origin.
#[async_trait]
pub trait PaceStore: Debug + Send + Sync + 'static {
    /// Stores the state of a line's pace, whose quota applies to direct admissions from now on. A step of the leader:
    /// fails with [`crate::Error::StaleEpoch`] if another term has begun. Returns whether there is such an item.
    async fn set_pace(&self, epoch: Epoch, id: &ItemId, state: &PaceState) -> Result<bool>;

    /// Replaces the report of a pod about the origin of a line, and removes reports older than
    /// [`crate::ORIGIN_RETENTION_MS`]. Returns false if [`crate::MAX_ORIGIN_PODS`] other pods have one.
    async fn put_origin_report(
        &self,
        id: &ItemId,
        report: &OriginReport,
        now: Millis,
    ) -> Result<bool>;

    /// Returns the reports about the origin of a line that are not older than [`crate::ORIGIN_RETENTION_MS`], sorted by
    /// pod.
    async fn origin_reports(&self, id: &ItemId, now: Millis) -> Result<Vec<OriginReport>>;
}
