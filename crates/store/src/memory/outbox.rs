use std::collections::{BTreeMap, VecDeque};

use daegi_domain::{Item, Lane, LineEvent, TicketEvent, lane};

use crate::types::{Epoch, OutboxBatch};

/// The unpublished events of one partition, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Outbox {
    batches: VecDeque<OutboxBatch>,
    last_id: u64,
}

/// The events of one step on one lane.
#[derive(Debug, Default)]
pub(super) struct PendingEvents {
    pub(super) ended: Vec<TicketEvent>,
    pub(super) admitted: Vec<TicketEvent>,
    pub(super) line: Option<LineEvent>,
}

/// The events of one step on all lanes of an item. The ends of all lanes are written before the admissions, so
/// that a user whose old ticket ends and who is admitted again in the same step appears in that order.
#[derive(Debug, Default)]
pub(super) struct StepEvents {
    lanes: BTreeMap<Lane, PendingEvents>,
    /// The leader's term; `None` for a step of a user or an order service.
    epoch: Option<Epoch>,
}

impl StepEvents {
    pub(super) fn new(epoch: Option<Epoch>) -> Self {
        Self { epoch, ..Self::default() }
    }

    /// Returns the events of a lane.
    pub(super) fn of_lane(&mut self, lane: Lane) -> &mut PendingEvents {
        self.lanes.entry(lane).or_default()
    }
}

impl Outbox {
    /// Continues with ids above all that were issued before a data loss. Redis does the same,
    /// because its stream ids come from its clock.
    pub(super) fn resume_after_loss(&mut self, run_id: u64) {
        self.last_id = run_id << 32;
    }

    pub(super) fn append(&mut self, item: &Item, events: StepEvents) {
        let StepEvents { mut lanes, epoch } = events;
        for take in [take_ended, take_admitted] {
            for (lane, pending) in &mut lanes {
                let events = take(pending);
                if !events.is_empty() {
                    self.push(item, *lane, epoch, events, None);
                }
            }
        }
        for (lane, line) in
            lanes.into_iter().filter_map(|(lane, events)| Some((lane, events.line?)))
        {
            self.push(item, lane, epoch, Vec::new(), Some(line));
        }
    }

    fn push(
        &mut self,
        item: &Item,
        lane: Lane,
        epoch: Option<Epoch>,
        events: Vec<TicketEvent>,
        line: Option<LineEvent>,
    ) {
        self.last_id += 1;
        let lane_name = lane::name(&item.policy.lanes, lane).cloned();
        let (id, item) = (self.last_id.to_string(), item.id.clone());
        self.batches.push_back(OutboxBatch { id, item, lane, lane_name, epoch, events, line });
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

fn take_ended(events: &mut PendingEvents) -> Vec<TicketEvent> {
    std::mem::take(&mut events.ended)
}

fn take_admitted(events: &mut PendingEvents) -> Vec<TicketEvent> {
    std::mem::take(&mut events.admitted)
}

fn parse_id(id: &str) -> Option<u64> {
    id.parse().ok()
}
