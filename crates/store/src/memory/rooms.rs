use std::collections::{BTreeMap, BTreeSet};

use daegi_domain::{ItemId, Settings};

use super::board::Board;
use super::generation::Generation;
use super::line::Line;
use super::outbox::{Outbox, Written};
use crate::model::{Catalogue, Epoch};
use crate::{Error, Result};

/// What a store held at one moment: what a replica has that did not get the newest writes.
#[derive(Debug, Clone)]
pub struct Replica(pub(super) Rooms);

/// Everything a store holds.
#[derive(Debug, Clone)]
pub(super) struct Rooms {
    pub(super) settings: Settings,
    pub(super) epoch: u64,
    pub(super) lines: BTreeMap<ItemId, Line>,
    pub(super) active: BTreeSet<ItemId>,
    pub(super) outboxes: Vec<Outbox>,
    /// How far logs were read, and the run in which that was noted.
    pub(super) catalogues: BTreeMap<String, (u64, Catalogue)>,
    pub(super) board: Board,
    /// The generation of each partition.
    pub(super) generations: Vec<Generation>,
}

impl Rooms {
    pub(super) fn empty(partitions: u16, settings: Settings) -> Self {
        Self {
            settings,
            epoch: 0,
            lines: BTreeMap::new(),
            active: BTreeSet::new(),
            outboxes: (0..partitions).map(|_| Outbox::default()).collect(),
            catalogues: BTreeMap::new(),
            board: Board::default(),
            generations: vec![Generation::default(); usize::from(partitions)],
        }
    }

    pub(super) fn check(&self, epoch: Epoch) -> Result<()> {
        let leads = epoch.0 == self.epoch && epoch.0 > 0;
        if leads { Ok(()) } else { Err(Error::StaleEpoch(epoch.0)) }
    }

    /// The line of an item that is there.
    pub(super) fn line(&self, id: &ItemId) -> Option<&Line> {
        self.lines.get(id).filter(|line| !line.removed)
    }

    /// How many tickets may wait in this line: what its policy says, and what the other lines leave
    /// of the whole store's limit.
    pub(super) fn most_waiting(&self, id: &ItemId, in_store: u64) -> u64 {
        let others = self.lines.iter().filter(|(other, _)| *other != id);
        let left = in_store.saturating_sub(others.map(|(_, line)| line.in_line()).sum());
        let policy = self.lines.get(id).and_then(|line| line.item.policy.max_waiting);
        policy.map_or(left, |most| left.min(most.into()))
    }

    /// One step on one line, with its events; the default answer where there is no line. `by` is
    /// the term of a leader's step.
    pub(super) fn change<T: Default>(
        &mut self,
        id: &ItemId,
        outbox: usize,
        by: Option<Epoch>,
        step: impl FnOnce(&mut Line, &mut Written) -> T,
    ) -> T {
        let Some(line) = self.lines.get_mut(id) else { return T::default() };
        let mut written = Written::by(by);
        let answer = step(line, &mut written);
        write_down(line, &mut self.outboxes[outbox], written);
        answer
    }

    /// The same for a step that may take people back, whose line then needs the leader again.
    pub(super) fn lives<T>(
        &mut self,
        id: &ItemId,
        outbox: usize,
        step: impl FnOnce(&mut Line, &mut Written) -> T,
    ) -> Option<T> {
        let joined = self.lines.get(id).map_or(0, |line| line.totals.joined);
        let answer = self.change(id, outbox, None, |line, written| Some(step(line, written)));
        if self.lines.get(id).is_some_and(|line| line.totals.joined > joined) {
            self.active.insert(id.clone());
        }
        answer
    }

    pub(super) fn line_mut(&mut self, id: &ItemId) -> Option<&mut Line> {
        self.lines.get_mut(id).filter(|line| !line.removed)
    }
}

/// Ends a step: groups the tickets it admitted and writes its events.
pub(super) fn write_down(line: &mut Line, outbox: &mut Outbox, written: Written) {
    line.entered.group(&written.activated);
    outbox.write(&line.item.id, written);
}
