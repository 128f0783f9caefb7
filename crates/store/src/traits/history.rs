use std::fmt::Debug;
use std::ops::RangeInclusive;

use async_trait::async_trait;
use daegi_domain::{ItemId, Millis, VisitCounts, VisitStep};

use crate::Result;
use crate::types::{Epoch, HourAppend};

/// The history of lines: their figures by minute, and their visits.
#[async_trait]
pub trait HistoryStore: Debug + Send + Sync + 'static {
    /// Appends to the log of a line's hour if its stored length is the given one. Otherwise changes nothing and
    /// returns the stored log, so that a repeated call and a new leader find what is recorded. The log is
    /// deleted `retention` after the last append.
    ///
    /// # Errors
    /// [`crate::Error::StaleEpoch`] if another replica leads.
    async fn append_hour(
        &self,
        epoch: Epoch,
        id: &ItemId,
        append: HourAppend<'_>,
        retention: Millis,
    ) -> Result<Option<Vec<u8>>>;

    /// Returns the logs of these hours, counted since 1970, in order. Hours without a log are left out. Not one
    /// atomic step.
    async fn hours(&self, id: &ItemId, hours: RangeInclusive<u64>) -> Result<Vec<(u64, Vec<u8>)>>;

    /// Adds visits to the minute and the hour of `now`. The minute is deleted
    /// [`daegi_domain::visit::VISIT_MINUTES_MS`] after the last visit of its hour, the hour `retention` after the
    /// last visit of its day. A repeated call counts twice.
    async fn add_visits(
        &self,
        id: &ItemId,
        visits: &VisitCounts,
        retention: Millis,
        now: Millis,
    ) -> Result<()>;

    /// Returns the visits of these steps, counted since 1970, in order. Steps without visits are left out. Not one
    /// atomic step.
    async fn visits(
        &self,
        id: &ItemId,
        step: VisitStep,
        steps: RangeInclusive<u64>,
    ) -> Result<Vec<(u64, VisitCounts)>>;
}
