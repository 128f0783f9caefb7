use async_trait::async_trait;
use daegi_domain::{ItemId, Millis, Number};

use super::client::call_error::with_epoch;
use super::keys::PartitionKeys;
use super::{RedisStore, WindowKind, reply};
use crate::limits::MAX_USERS_PER_CALL;
use crate::types::{Admission, Epoch, Expiry, Sweep};
use crate::{AdmissionStore, Result};

#[async_trait]
impl AdmissionStore for RedisStore {
    async fn begin_term(&self, now: Millis) -> Result<Epoch> {
        self.new_epoch(now).await
    }

    async fn active_lines_in(&self, partition: u16) -> Result<Vec<ItemId>> {
        self.members_of(&PartitionKeys::new(partition).active).await
    }

    async fn admit(
        &self,
        epoch: Epoch,
        id: &ItemId,
        quota: u32,
        min_interval: Millis,
        outbox_max: u64,
        now: Millis,
    ) -> Result<Admission> {
        let call = |first_slice: u64| {
            let mut script = self.line_script(id, |scripts| &scripts.admit);
            script.arg(epoch.0).arg(quota).arg(outbox_max).arg(now);
            script.arg(MAX_USERS_PER_CALL).arg(first_slice).arg(min_interval);
            script
        };
        let admission =
            self.with_liveness_window(id, WindowKind::Admit, now, call, reply::admission).await;
        admission.map_err(|error| with_epoch(epoch, error))
    }

    async fn expire(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<Expiry> {
        let mut script = self.line_script(id, |scripts| &scripts.expire);
        script
            .arg(epoch.0)
            .arg(now)
            .arg(MAX_USERS_PER_CALL)
            .arg(id.as_str())
            .arg(self.recovery_hold);
        let expiry = self.run(script).await.map(reply::expiry);
        expiry.map_err(|error| with_epoch(epoch, error))
    }

    async fn sweep(&self, epoch: Epoch, id: &ItemId, cursor: Number, now: Millis) -> Result<Sweep> {
        let call = |first_slice: u64| {
            let mut script = self.line_script(id, |scripts| &scripts.sweep);
            script.arg(epoch.0).arg(now).arg(cursor.0).arg(MAX_USERS_PER_CALL).arg(first_slice);
            script
        };
        let swept = self.with_liveness_window(id, WindowKind::Sweep, now, call, reply::sweep).await;
        swept.map_err(|error| with_epoch(epoch, error))
    }
}
