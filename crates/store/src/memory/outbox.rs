use std::collections::VecDeque;

use daegi_domain::{ItemId, LineEvent, TicketEvent};

use crate::types::{Epoch, OutboxBatch};

/// The unpublished events of one partition, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Outbox {
    batches: VecDeque<OutboxBatch>,
    last_id: u64,
}

/// The events of one step. Ends are written before admissions, so that a user whose old ticket ends and
/// who is admitted again in the same step appears in that order.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    pub(super) ended: Vec<TicketEvent>,
    pub(super) admitted: Vec<TicketEvent>,
    pub(super) line: Option<LineEvent>,
    /// The leader's term; `None` for a step of a user or an order service.
    pub(super) epoch: Option<Epoch>,
}

impl PendingEvents {
    pub(super) fn new(epoch: Option<Epoch>) -> Self {
        Self { epoch, ..Self::default() }
    }
}

impl Outbox {
    /// Continues with ids above all that were issued before a data loss. Redis does the same,
    /// because its stream ids come from its clock.
    pub(super) fn resume_after_loss(&mut self, run_id: u64) {
        self.last_id = run_id << 32;
    }

    pub(super) fn append(&mut self, item: &ItemId, events: PendingEvents) {
        let epoch = events.epoch;
        let mut push = |events: Vec<TicketEvent>, line: Option<LineEvent>| {
            self.last_id += 1;
            let id = self.last_id.to_string();
            self.batches.push_back(OutboxBatch { id, item: item.clone(), epoch, events, line });
        };
        for events in [events.ended, events.admitted] {
            if !events.is_empty() {
                push(events, None);
            }
        }
        if let Some(line) = events.line {
            push(Vec::new(), Some(line));
        }
    }

    pub(super) fn read(&self, after: Option<&str>, limit: u32) -> Vec<OutboxBatch> {
        let after = after.and_then(parse_id);
        let unread = self.batches.iter().skip_while(|batch| parse_id(&batch.id) <= after);
        unread.take(limit as usize).cloned().collect()
    }

    pub(super) fn ack(&mut self, ids: &[String]) {
        self.batches.retain(|batch| !ids.contains(&batch.id));
    }

    /// Counts the admissions among the events.
    pub(super) fn admissions(&self) -> u64 {
        let is_admission = |event: &&TicketEvent| matches!(event, TicketEvent::Admitted { .. });
        let events = self.batches.iter().flat_map(|batch| &batch.events);
        events.filter(is_admission).count() as u64
    }

    pub(super) fn events(&self) -> u64 {
        self.batches.iter().map(|batch| batch.len() as u64).sum()
    }
}

fn parse_id(id: &str) -> Option<u64> {
    id.parse().ok()
}
