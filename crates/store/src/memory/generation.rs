use std::collections::VecDeque;

use daegi_domain::Millis;

use crate::limits::{MAX_LOST_GENERATIONS, RECLAIM_WINDOW_MS};

/// The generation of one partition's data, written with the partition and lost with it. See
/// `docs/adr/015-store-generations.md`.
#[derive(Debug, Clone, Default)]
pub(super) struct Generation {
    /// `None` in a partition that lost its data and that no process has used since.
    id: Option<u64>,
    /// The generations whose loss is recorded, oldest first.
    lost: VecDeque<u64>,
    loss_at: Option<Millis>,
}

impl Generation {
    /// Returns the id; a partition without one receives it.
    pub(super) fn open(&mut self) -> u64 {
        *self.id.get_or_insert_with(|| fastrand::u64(..))
    }

    /// Compares the generation that the process found when it started with the stored one. A different
    /// one, or none, is evidence of a loss, which is recorded once per generation.
    pub(super) fn check(&mut self, known: u64, now: Millis) {
        if self.id == Some(known) || self.lost.contains(&known) {
            return;
        }
        self.open();
        self.lost.push_back(known);
        if self.lost.len() > MAX_LOST_GENERATIONS {
            self.lost.pop_front();
        }
        self.loss_at = Some(now);
    }

    /// Records a loss that an operator declared.
    pub(super) fn declare_loss(&mut self, now: Millis) {
        self.open();
        self.loss_at = Some(now);
    }

    /// Returns until when numbers are reclaimed after the recorded loss; 0 if no loss is recorded.
    pub(super) fn reclaim_until(&self) -> Millis {
        self.loss_at.map_or(0, |at| at + RECLAIM_WINDOW_MS)
    }
}
