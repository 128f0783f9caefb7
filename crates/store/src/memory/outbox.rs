use std::collections::VecDeque;

use daegi_domain::{ItemId, LineEvent};

use crate::{Epoch, OutboxBatch};

/// Events of one partition that nobody has published yet, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Outbox {
    batches: VecDeque<OutboxBatch>,
    written: u64,
}

/// The events of one step: ends come before admissions, so that a person whose old ticket ends
/// and who is let in anew in the same step is heard of in that order.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) closed: Vec<LineEvent>,
    pub(super) activated: Vec<LineEvent>,
    /// Whose step it is, if it is a leader's.
    pub(super) epoch: Option<Epoch>,
}

impl Written {
    pub(super) fn by(epoch: Option<Epoch>) -> Self {
        Self { epoch, ..Self::default() }
    }
}

impl Outbox {
    /// Ids go on behind all that were given before a loss, as those do that Redis takes from its
    /// clock.
    pub(super) fn go_on_in(&mut self, run: u64) {
        self.written = run << 32;
    }

    pub(super) fn write(&mut self, item: &ItemId, written: Written) {
        let epoch = written.epoch;
        for events in [written.closed, written.activated] {
            if !events.is_empty() {
                self.written += 1;
                let id = self.written.to_string();
                self.batches.push_back(OutboxBatch { id, item: item.clone(), epoch, events });
            }
        }
    }

    pub(super) fn read(&self, after: Option<&str>, limit: u32) -> Vec<OutboxBatch> {
        let read = after.and_then(place);
        let unread = self.batches.iter().skip_while(|batch| place(&batch.id) <= read);
        unread.take(limit as usize).cloned().collect()
    }

    pub(super) fn ack(&mut self, ids: &[String]) {
        self.batches.retain(|batch| !ids.contains(&batch.id));
    }

    /// How many of the events are admissions.
    pub(super) fn admissions(&self) -> u64 {
        let is_admission = |event: &&LineEvent| matches!(event, LineEvent::Activated { .. });
        let events = self.batches.iter().flat_map(|batch| &batch.events);
        events.filter(is_admission).count() as u64
    }

    pub(super) fn events(&self) -> u64 {
        self.batches.iter().map(|batch| batch.events.len() as u64).sum()
    }
}

/// Where a batch stands: ids are counted.
fn place(id: &str) -> Option<u64> {
    id.parse().ok()
}
