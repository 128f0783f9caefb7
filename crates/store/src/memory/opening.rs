use async_trait::async_trait;
use daegi_domain::{CohortRange, Drawn, ItemId, Lane, Millis, Number, UserId};

use super::line::Line;
use super::outbox::PendingEvents;
use super::{MemoryStore, rules};
use crate::limits::LEAVES_PER_CALL;
use crate::types::Epoch;
use crate::{OpeningStore, Result};

#[async_trait]
impl OpeningStore for MemoryStore {
    async fn freeze_cohort(
        &self,
        epoch: Epoch,
        id: &ItemId,
        now: Millis,
    ) -> Result<Option<CohortRange>> {
        self.opening_step(epoch, id, |line, _| rules::freeze_cohort::freeze_cohort(line, now))
    }

    async fn open_line(
        &self,
        epoch: Epoch,
        id: &ItemId,
        drawn: Option<Drawn>,
        now: Millis,
    ) -> Result<bool> {
        self.opening_step(epoch, id, |line, events| {
            rules::open_line::open_line(line, drawn, now, events)
        })
    }

    async fn close_line(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<bool> {
        self.opening_step(epoch, id, |line, events| {
            rules::close_line::close_line(line, now, events)
        })
    }

    async fn waiting_from(
        &self,
        id: &ItemId,
        from: Number,
        limit: u32,
    ) -> Result<Vec<(UserId, Number)>> {
        let state = self.state();
        Ok(state
            .lines(id)
            .map(|lines| lines.standard.waiting.from(from, limit as usize))
            .unwrap_or_default())
    }

    async fn put_leaves(
        &self,
        id: &ItemId,
        root: &[u8; 32],
        first: u64,
        leaves: &[[u8; 32]],
    ) -> Result<()> {
        if let Some(lines) = self.state().lines_mut(id) {
            let stored = lines.standard.draw_leaves.entry(*root).or_default();
            let first = usize::try_from(first).unwrap_or(usize::MAX).min(stored.len());
            stored.truncate(first);
            stored.extend_from_slice(leaves);
        }
        Ok(())
    }

    async fn leaves(&self, id: &ItemId, root: &[u8; 32], first: u64) -> Result<Vec<[u8; 32]>> {
        let state = self.state();
        let stored = state.lines(id).and_then(|lines| lines.standard.draw_leaves.get(root));
        let from = usize::try_from(first).unwrap_or(usize::MAX);
        let page = stored.into_iter().flatten().skip(from).take(LEAVES_PER_CALL);
        Ok(page.copied().collect())
    }
}

impl MemoryStore {
    /// Runs a step of the leader on one line.
    fn opening_step<T: Default>(
        &self,
        epoch: Epoch,
        id: &ItemId,
        step: impl FnOnce(&mut Line, &mut PendingEvents) -> T,
    ) -> Result<T> {
        self.control_step(id, |state, partition| {
            state.check_epoch(epoch)?;
            Ok(state.update_line((id, Lane::STANDARD), partition, Some(epoch), step))
        })
    }
}
