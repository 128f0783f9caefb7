use std::sync::atomic::Ordering;

use async_trait::async_trait;
use daegi_domain::{ItemId, Lane, Millis, Number};

use super::line::Line;
use super::outbox::{PendingEvents, StepEvents};
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
        let Some(lines) = state.lines.get_mut(id) else {
            return Ok(Admission { remaining: quota, ..Admission::default() });
        };
        let mut events = StepEvents::new(Some(epoch));
        let admission = rules::admit::admit(
            lines,
            quota,
            &settings,
            min_interval,
            outbox_room,
            now,
            &mut events,
        );
        state.outboxes[partition].append(&lines.shared().item, events);
        Ok(admission)
    }

    async fn expire(&self, epoch: Epoch, id: &ItemId, lane: Lane, now: Millis) -> Result<Expiry> {
        let (mut state, partition) = (self.state(), self.partition_index(id));
        state.check_epoch(epoch)?;
        let store = self.identity(&state, partition);
        let expire = |line: &mut Line, events: &mut PendingEvents| {
            Some(rules::expire::expire(line, store, now, events))
        };
        let expiry = state.update_line((id, lane), partition, Some(epoch), expire);
        let active = match state.lines.get(id) {
            Some(lines) => !lane.is_standard() || lines.is_active(),
            None => false,
        };
        if !active {
            state.active.remove(id);
        }
        let nothing = Expiry { front_is_above_base: active, ..Expiry::default() };
        let lanes = state.lines.get(id).map_or(0, |lines| lines.lanes().count() - 1);
        Ok(Expiry { active, lanes, ..expiry.unwrap_or(nothing) })
    }

    async fn sweep(
        &self,
        epoch: Epoch,
        id: &ItemId,
        lane: Lane,
        cursor: Number,
        now: Millis,
    ) -> Result<Sweep> {
        let partition = self.partition_index(id);
        let mut state = self.state();
        state.check_epoch(epoch)?;
        let settings = state.settings;
        let sweep = |line: &mut Line, events: &mut PendingEvents| {
            Some(rules::sweep::sweep(line, cursor, &settings, now, events))
        };
        let swept = state.update_line((id, lane), partition, Some(epoch), sweep);
        Ok(swept.unwrap_or(Sweep { abandoned: 0, cursor: Number(0) }))
    }
}
