use std::sync::atomic::Ordering;

use async_trait::async_trait;
use daegi_domain::{ItemId, Millis, Number};

use super::line::Line;
use super::outbox::PendingEvents;
use super::{MemoryStore, rules};
use crate::types::{Admission, Epoch, Expiry, Sweep};
use crate::{AdmissionStore, Result};

#[async_trait]
impl AdmissionStore for MemoryStore {
    async fn begin_term(&self, now: Millis) -> Result<Epoch> {
        let mut state = self.state();
        let latest = self.latest_epoch.load(Ordering::Relaxed).max(state.epoch);
        state.epoch = latest.max(now) + 1;
        self.latest_epoch.store(state.epoch, Ordering::Relaxed);
        Ok(Epoch(state.epoch))
    }

    async fn active_lines_in(&self, partition: u16) -> Result<Vec<ItemId>> {
        let is_in_partition = |id: &&ItemId| crate::partition_of(id, self.partitions) == partition;
        Ok(self.state().active.iter().filter(is_in_partition).cloned().collect())
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
        let partition = self.partition_index(id);
        let mut state = self.state();
        state.check_epoch(epoch)?;
        let state = &mut *state;
        let outbox_room = outbox_max.saturating_sub(state.outboxes[partition].admissions());
        let settings = state.settings;
        // The operator may have set the quota to 0 since this round began.
        let stopped = settings.token_count_to_move == 0;
        let quota = if stopped { 0 } else { quota };
        let admit = |line: &mut Line, events: &mut PendingEvents| {
            Some(rules::admit::admit(
                line,
                quota,
                &settings,
                min_interval,
                outbox_room,
                now,
                events,
            ))
        };
        let admission = state.update_line(id, partition, Some(epoch), admit);
        Ok(admission.unwrap_or(Admission { remaining: quota, ..Admission::default() }))
    }

    async fn expire(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<Expiry> {
        let (mut state, partition) = (self.state(), self.partition_index(id));
        state.check_epoch(epoch)?;
        let store = self.identity(&state, partition);
        let expire = |line: &mut Line, events: &mut PendingEvents| {
            rules::expire::expire(line, store, now, events)
        };
        let expiry = state.update_line(id, partition, Some(epoch), expire);
        if !expiry.active {
            state.active.remove(id);
        }
        Ok(expiry)
    }

    async fn sweep(&self, epoch: Epoch, id: &ItemId, cursor: Number, now: Millis) -> Result<Sweep> {
        let partition = self.partition_index(id);
        let mut state = self.state();
        state.check_epoch(epoch)?;
        let settings = state.settings;
        let sweep = |line: &mut Line, events: &mut PendingEvents| {
            Some(rules::sweep::sweep(line, cursor, &settings, now, events))
        };
        let swept = state.update_line(id, partition, Some(epoch), sweep);
        Ok(swept.unwrap_or(Sweep { abandoned: 0, cursor: Number(0) }))
    }
}
