use async_trait::async_trait;
use daegi_domain::{ItemControl, ItemId, Lane, Millis};

use super::rules::restore_control::Restored;
use super::state::State;
use super::{MemoryStore, rules};
use crate::types::Epoch;
use crate::{ControlStore, Result};

#[async_trait]
impl ControlStore for MemoryStore {
    async fn changed_controls(&self, partition: u16, limit: u32) -> Result<Vec<(ItemId, u64)>> {
        let state = self.state();
        let changed = state.changed_controls[usize::from(partition)].iter();
        let mut changed: Vec<_> = changed.map(|(id, version)| (id.clone(), *version)).collect();
        changed.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
        changed.truncate(limit as usize);
        Ok(changed)
    }

    async fn control(&self, id: &ItemId) -> Result<Option<ItemControl>> {
        let state = self.state();
        let lines = state.lines.get(id).filter(|lines| lines.shared().item.control_version > 0);
        Ok(lines.map(|lines| lines.control()))
    }

    async fn controls_published(&self, partition: u16, published: &[(ItemId, u64)]) -> Result<()> {
        let mut state = self.state();
        let changed = &mut state.changed_controls[usize::from(partition)];
        for (id, published) in published {
            if changed.get(id).is_some_and(|version| version <= published) {
                changed.remove(id);
            }
        }
        Ok(())
    }

    async fn checkpoint_control(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<bool> {
        self.control_step(id, |state, partition| {
            state.check_epoch(epoch)?;
            Ok(state.update_line((id, Lane::STANDARD), partition, Some(epoch), |line, _| {
                rules::checkpoint_control::checkpoint_control(line, now)
            }))
        })
    }

    async fn restore_control(&self, control: &ItemControl, now: Millis) -> Result<bool> {
        let (mut state, partition) = (self.state(), self.partition_index(&control.id));
        let store = self.checked_identity(&mut state, partition, now);
        let before = state.control_version(&control.id);
        let restored =
            rules::restore_control::restore_control(&mut state.lines, control, store, now);
        let is_live = state.lines(&control.id).is_some();
        if is_live && restored != Restored::Outdated {
            state.active.insert(control.id.clone());
        }
        if restored == Restored::Replaced {
            // The topic may end with an older record, which a compaction would keep.
            let changed = &mut state.changed_controls[partition];
            changed.insert(control.id.clone(), control.control_version);
        }
        Ok(state.control_version(&control.id) > before)
    }
}

impl MemoryStore {
    /// Runs a step on one item, and marks the item if the step changed its settings.
    pub(super) fn control_step<T>(
        &self,
        id: &ItemId,
        step: impl FnOnce(&mut State, usize) -> T,
    ) -> T {
        let (mut state, partition) = (self.state(), self.partition_index(id));
        let before = state.control_version(id);
        let outcome = step(&mut state, partition);
        let version = state.control_version(id);
        if version > before {
            state.changed_controls[partition].insert(id.clone(), version);
        }
        outcome
    }
}
