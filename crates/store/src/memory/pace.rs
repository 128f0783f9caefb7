use async_trait::async_trait;
use daegi_domain::pace::origin::OriginReport;
use daegi_domain::{ItemId, Millis, PaceState};

use super::MemoryStore;
use crate::limits::{MAX_ORIGIN_PODS, ORIGIN_RETENTION_MS};
use crate::types::Epoch;
use crate::{PaceStore, Result};

#[async_trait]
impl PaceStore for MemoryStore {
    async fn set_pace(&self, epoch: Epoch, id: &ItemId, pace: &PaceState) -> Result<bool> {
        let mut state = self.state();
        state.check_epoch(epoch)?;
        let Some(lines) = state.lines_mut(id) else { return Ok(false) };
        lines.standard.shared.item.pace = Some(pace.clone());
        Ok(true)
    }

    async fn put_origin_report(
        &self,
        id: &ItemId,
        report: &OriginReport,
        now: Millis,
    ) -> Result<bool> {
        let mut state = self.state();
        let reports = state.origin_reports.entry(id.clone()).or_default();
        reports.retain(|_, report| report.at >= now.saturating_sub(ORIGIN_RETENTION_MS));
        let others = reports.keys().filter(|pod| **pod != report.pod).count();
        if others as u64 >= MAX_ORIGIN_PODS {
            return Ok(false);
        }
        reports.insert(report.pod.clone(), report.clone());
        Ok(true)
    }

    async fn origin_reports(&self, id: &ItemId, now: Millis) -> Result<Vec<OriginReport>> {
        let state = self.state();
        let reports = state.origin_reports.get(id).into_iter().flat_map(|reports| reports.values());
        let oldest = now.saturating_sub(ORIGIN_RETENTION_MS);
        Ok(reports.filter(|report| report.at >= oldest).cloned().collect())
    }
}
