use std::collections::{BTreeMap, BTreeSet};

use daegi_domain::{ItemId, Settings};

use super::admin::{AuditLog, Heartbeats};
use super::generation::Generation;
use super::line::Line;
use super::outbox::{Outbox, PendingEvents};
use crate::types::{Epoch, ReplayState};
use crate::{Error, Result};

/// The state of a store at one moment: the data of a replica that missed later writes.
#[derive(Debug, Clone)]
pub struct StoreImage(pub(super) State);

/// Everything a memory store holds.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) epoch: u64,
    pub(super) lines: BTreeMap<ItemId, Line>,
    pub(super) active: BTreeSet<ItemId>,
    pub(super) outboxes: Vec<Outbox>,
    /// The replay state of each log, and the run of the store in which it was written.
    pub(super) replays: BTreeMap<String, (u64, ReplayState)>,
    pub(super) audit_log: AuditLog,
    pub(super) heartbeats: Heartbeats,
    /// The generation of each partition.
    pub(super) generations: Vec<Generation>,
}

impl State {
    pub(super) fn empty(partitions: u16, settings: Settings) -> Self {
        Self {
            settings,
            epoch: 0,
            lines: BTreeMap::new(),
            active: BTreeSet::new(),
            outboxes: (0..partitions).map(|_| Outbox::default()).collect(),
            replays: BTreeMap::new(),
            audit_log: AuditLog::default(),
            heartbeats: Heartbeats::default(),
            generations: vec![Generation::default(); usize::from(partitions)],
        }
    }

    pub(super) fn check_epoch(&self, epoch: Epoch) -> Result<()> {
        let leads = epoch.0 == self.epoch && epoch.0 > 0;
        if leads { Ok(()) } else { Err(Error::StaleEpoch(epoch.0)) }
    }

    /// Returns the line of an item that was not removed.
    pub(super) fn line(&self, id: &ItemId) -> Option<&Line> {
        self.lines.get(id).filter(|line| !line.removed)
    }

    /// The same as [`State::line`], to change it.
    pub(super) fn line_mut(&mut self, id: &ItemId) -> Option<&mut Line> {
        self.lines.get_mut(id).filter(|line| !line.removed)
    }

    /// Returns how many tickets may wait in this line: the limit of its policy, and what the other
    /// lines leave of the limit of the whole store.
    pub(super) fn max_waiting(&self, id: &ItemId, in_store: u64) -> u64 {
        let others = self.lines.iter().filter(|(other, _)| *other != id);
        let left = in_store.saturating_sub(others.map(|(_, line)| line.in_line()).sum());
        let policy = self.lines.get(id).and_then(|line| line.item.policy.max_waiting);
        policy.map_or(left, |max| left.min(max.into()))
    }

    /// Runs one step on one line and writes its events; returns the default if there is no line.
    /// `epoch` is the term of a leader's step.
    pub(super) fn update_line<T: Default>(
        &mut self,
        id: &ItemId,
        partition: usize,
        epoch: Option<Epoch>,
        step: impl FnOnce(&mut Line, &mut PendingEvents) -> T,
    ) -> T {
        let Some(line) = self.lines.get_mut(id) else { return T::default() };
        let mut events = PendingEvents::new(epoch);
        let outcome = step(line, &mut events);
        commit(line, &mut self.outboxes[partition], events);
        outcome
    }

    /// Runs a step like [`State::update_line`] and marks the line as active if the step reclaimed a
    /// ticket, because the line then needs the leader again.
    pub(super) fn update_and_activate<T>(
        &mut self,
        id: &ItemId,
        partition: usize,
        step: impl FnOnce(&mut Line, &mut PendingEvents) -> T,
    ) -> Option<T> {
        let joined = self.lines.get(id).map_or(0, |line| line.totals.joined);
        let outcome =
            self.update_line(id, partition, None, |line, events| Some(step(line, events)));
        if self.lines.get(id).is_some_and(|line| line.totals.joined > joined) {
            self.active.insert(id.clone());
        }
        outcome
    }
}

/// Ends a step: appends its events to the outbox.
pub(super) fn commit(line: &Line, outbox: &mut Outbox, events: PendingEvents) {
    outbox.append(&line.item.id, events);
}
