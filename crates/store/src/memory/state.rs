use std::collections::{BTreeMap, BTreeSet, HashMap};

use daegi_domain::pace::origin::OriginReport;
use daegi_domain::{ItemId, Lane, Millis, Settings, Ticket};

use super::access::AccessState;
use super::admin::{AuditLog, Heartbeats};
use super::generation::Generation;
use super::history::LineHistories;
use super::item_lines::ItemLines;
use super::line::Line;
use super::outbox::{Outbox, PendingEvents, StepEvents};
use super::rules::reclaim::StoreIdentity;
use super::signals::ItemSignals;
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
    pub(super) lines: BTreeMap<ItemId, ItemLines>,
    pub(super) active: BTreeSet<ItemId>,
    pub(super) outboxes: Vec<Outbox>,
    /// The replay state of each log, and the run of the store in which it was written.
    pub(super) replays: BTreeMap<String, (u64, ReplayState)>,
    pub(super) audit_log: AuditLog,
    /// The record of each operator, by name.
    pub(super) operators: BTreeMap<String, String>,
    pub(super) heartbeats: Heartbeats,
    pub(super) access: AccessState,
    pub(super) signals: BTreeMap<ItemId, ItemSignals>,
    pub(super) histories: LineHistories,
    /// What each pod knows of the origin of each line.
    pub(super) origin_reports: BTreeMap<ItemId, BTreeMap<String, OriginReport>>,
    /// The items of each partition whose settings are not published yet, with their control versions.
    pub(super) changed_controls: Vec<BTreeMap<ItemId, u64>>,
    /// The generation of each partition.
    pub(super) generations: Vec<Generation>,
    /// The handover codes that were used last.
    pub(super) handovers: HashMap<Ticket, UsedHandover>,
}

/// The handover code of a ticket that was used last.
#[derive(Debug, Clone, Copy)]
pub(super) struct UsedHandover {
    pub(super) issued_at: Millis,
    /// Until when the store remembers it.
    pub(super) until: Millis,
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
            operators: BTreeMap::new(),
            heartbeats: Heartbeats::default(),
            access: AccessState::default(),
            signals: BTreeMap::new(),
            histories: LineHistories::default(),
            origin_reports: BTreeMap::new(),
            changed_controls: vec![BTreeMap::new(); usize::from(partitions)],
            generations: vec![Generation::default(); usize::from(partitions)],
            handovers: HashMap::new(),
        }
    }

    pub(super) fn check_epoch(&self, epoch: Epoch) -> Result<()> {
        let leads = epoch.0 == self.epoch && epoch.0 > 0;
        if leads { Ok(()) } else { Err(Error::StaleEpoch(epoch.0)) }
    }

    /// Returns the control version of an item, also of one that was removed.
    pub(super) fn control_version(&self, id: &ItemId) -> u64 {
        self.lines.get(id).map_or(0, |lines| lines.shared().item.control_version)
    }

    /// Returns the lines of an item that was not removed.
    pub(super) fn lines(&self, id: &ItemId) -> Option<&ItemLines> {
        self.lines.get(id).filter(|lines| !lines.shared().removed)
    }

    /// The same as [`State::lines`], to change them.
    pub(super) fn lines_mut(&mut self, id: &ItemId) -> Option<&mut ItemLines> {
        self.lines.get_mut(id).filter(|lines| !lines.shared().removed)
    }

    /// Returns how many tickets may wait in this line: the limit of its policy, and what the other
    /// lines leave of the limit of the whole store.
    pub(super) fn max_waiting(&self, id: &ItemId, in_store: u64) -> u64 {
        let others = self.lines.iter().filter(|(other, _)| *other != id);
        let left = in_store.saturating_sub(others.map(|(_, lines)| lines.in_line()).sum());
        let policy = self.lines.get(id).and_then(|lines| lines.shared().item.policy.max_waiting);
        policy.map_or(left, |max| left.min(max.into()))
    }

    /// Runs one step on the line of a lane and writes its events. Returns the default if no ticket was issued
    /// in the lane. `epoch` is the term of a leader's step.
    pub(super) fn update_line<T: Default>(
        &mut self,
        (id, lane): (&ItemId, Lane),
        partition: usize,
        epoch: Option<Epoch>,
        step: impl FnOnce(&mut Line, &mut PendingEvents) -> T,
    ) -> T {
        let Some(lines) = self.lines.get_mut(id) else { return T::default() };
        let mut events = StepEvents::new(epoch);
        let pending = events.of_lane(lane);
        let outcome = lines.with(lane, |line| step(line, pending)).unwrap_or_default();
        self.outboxes[partition].append(&lines.shared().item, events);
        outcome
    }

    /// Runs a step of users on the line of their tickets' lane, which begins if the lane has none. All tickets are
    /// of one lane.
    pub(super) fn update_tickets<T>(
        &mut self,
        tickets: &[Ticket],
        partition: usize,
        store: StoreIdentity,
        now: Millis,
        step: impl FnOnce(&mut Line, &mut PendingEvents) -> T,
    ) -> Option<T> {
        let Ticket { item: id, lane, .. } = tickets.first()?;
        let lines = self.lines.get_mut(id)?;
        lines.begin(*lane, store.run_id, now);
        lines.find_live_elsewhere(*lane, tickets.iter().map(|ticket| &ticket.user));
        self.update_line((id, *lane), partition, None, |line, events| Some(step(line, events)))
    }

    /// Runs a step like [`State::update_tickets`] and marks the line as active if the step reclaimed a
    /// ticket, because the line then needs the leader again.
    pub(super) fn update_and_activate<T>(
        &mut self,
        tickets: &[Ticket],
        partition: usize,
        store: StoreIdentity,
        now: Millis,
        step: impl FnOnce(&mut Line, &mut PendingEvents) -> T,
    ) -> Option<T> {
        let id = &tickets.first()?.item;
        let joined = self.lines.get(id).map_or(0, ItemLines::joined);
        let outcome = self.update_tickets(tickets, partition, store, now, step);
        if self.lines.get(id).is_some_and(|lines| lines.joined() > joined) {
            self.active.insert(id.clone());
        }
        outcome
    }
}
