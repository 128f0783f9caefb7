use std::collections::BTreeMap;

use async_trait::async_trait;
use daegi_domain::pace::origin::OriginReport;
use daegi_domain::{ItemId, Lane, Millis, PaceState};

use super::RedisStore;
use super::client::call_error::with_epoch;
use super::scripts::scripts;
use crate::limits::{MAX_ORIGIN_PODS, ORIGIN_RETENTION_MS};
use crate::types::Epoch;
use crate::{PaceStore, Result};

#[async_trait]
impl PaceStore for RedisStore {
    async fn set_pace(&self, epoch: Epoch, id: &ItemId, state: &PaceState) -> Result<bool> {
        let mut script = self.line_script(id, Lane::STANDARD, |scripts| &scripts.set_pace);
        script.arg(epoch.0).arg(state.to_string()).arg(state.quota);
        self.run(script).await.map_err(|error| with_epoch(epoch, error))
    }

    async fn put_origin_report(
        &self,
        id: &ItemId,
        report: &OriginReport,
        now: Millis,
    ) -> Result<bool> {
        let mut script = scripts().put_origin_report.invocation();
        script.key(self.keys(id).origin()).arg(&report.pod).arg(report.to_text());
        script.arg(now.saturating_sub(ORIGIN_RETENTION_MS)).arg(MAX_ORIGIN_PODS);
        script.arg(ORIGIN_RETENTION_MS);
        self.run(script).await
    }

    async fn origin_reports(&self, id: &ItemId, now: Millis) -> Result<Vec<OriginReport>> {
        let key = self.keys(id).origin();
        let stored: BTreeMap<String, String> =
            self.command(::redis::cmd("HGETALL").arg(key)).await?;
        let oldest = now.saturating_sub(ORIGIN_RETENTION_MS);
        // A report of another release that this one cannot read is left out.
        let reports = stored.iter().filter_map(|(pod, text)| OriginReport::parse(pod, text));
        Ok(reports.filter(|report| report.at >= oldest).collect())
    }
}
