//! Invariants of a fair line after every step. Checked on the memory store only, because a different reply of
//! Redis has failed the history before.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use daegi_domain::draw::Cohort;
use daegi_domain::{
    Departed, ItemId, Lane, Number, Rank, Reclaimed, Ticket, TicketEvent, line_rules,
};
use daegi_store::{
    ChangeCursor, ItemStore, LaneCounts, LineSnapshot, MemoryStore, OutboxBatch, OutboxStore,
    TicketState, TicketStore,
};

use super::harness::{LANES, ModelHarness, Violation, all_lanes};
use crate::support::PARTITIONS;

#[derive(Default)]
pub(super) struct Fairness {
    /// Per item and lane.
    lines: Vec<[TrackedLine; LANES]>,
}

/// The state of one line between two checks.
#[derive(Default)]
struct TrackedLine {
    frontier: Option<Rank>,
    /// The drawn cohort, which is served by rank.
    cohort: Option<Cohort>,
    /// Numbers up to it were issued before a loss.
    base: Option<Number>,
    /// Events already checked, as (number, is an end).
    seen_events: BTreeSet<(Number, bool)>,
    admissions: u64,
    /// The number of earlier admissions is unknown, after a loss.
    baseline_unknown: bool,
    /// Numbers whose holder showed a pass: they were admitted before.
    restored: BTreeSet<Number>,
    /// The highest rank ever admitted.
    highest_admitted: Option<Rank>,
    /// Numbers that missed their turn: they may be admitted after higher ones.
    skipped: BTreeSet<Number>,
    /// The last position of every waiting number, and how many tickets below the frontier are served before.
    positions: BTreeMap<Number, u64>,
    served_before: u64,
}

impl Fairness {
    pub(super) fn new(items: usize) -> Self {
        Self { lines: (0..items).map(|_| Default::default()).collect() }
    }

    pub(super) async fn check(&mut self, harness: &ModelHarness<'_>) -> Result<(), Violation> {
        let events = outboxes(harness).await;
        let lines = self.lines.iter_mut().zip(&harness.items);
        let lines = lines.flat_map(|(lanes, item)| {
            lanes.iter_mut().zip(all_lanes()).map(move |(line, lane)| (line, lane, item))
        });
        for (line, lane, item) in lines {
            let mine = events.iter().filter(|batch| batch.item == *item && batch.lane == lane);
            let counts = harness.memory.counts(std::slice::from_ref(item)).await.unwrap().pop();
            // A lane that the policy does not have has no tickets.
            let counts = counts.and_then(|counts| match (counts.lanes.is_empty(), lane) {
                (true, Lane::STANDARD) => Some(counts.all_lanes()),
                _ => counts.lanes.get(lane.index()).copied(),
            });
            let start = ChangeCursor::default();
            let snapshot = harness.memory.snapshot(item, lane, start).await.unwrap();
            if let Some(snapshot) = &snapshot {
                line.follow_cohort(snapshot);
            }
            line.check_events(mine.flat_map(|batch| &batch.events))?;
            if let (Some(counts), Some(snapshot)) = (counts, snapshot) {
                line.no_ticket_is_lost(&counts)?;
                line.frontier_moves_forward(&snapshot)?;
                line.waiting_numbers_are_dense(&snapshot)?;
                line.positions_do_not_grow(&snapshot, &counts)?;
            }
        }
        Ok(())
    }

    /// Restarts the checks after a loss with the remaining events.
    pub(super) async fn restart_after_loss(&mut self, harness: &ModelHarness<'_>) {
        let events = outboxes(harness).await;
        let lines = self.lines.iter_mut().zip(&harness.items);
        let lines = lines.flat_map(|(lanes, item)| {
            lanes.iter_mut().zip(all_lanes()).map(move |(line, lane)| (line, lane, item))
        });
        for (line, lane, item) in lines {
            let mine = events.iter().filter(|batch| batch.item == *item && batch.lane == lane);
            let seen_events = mine.flat_map(|batch| &batch.events).map(TrackedLine::mark);
            (line.seen_events, line.baseline_unknown) = (seen_events.collect(), true);
        }
    }

    /// Records that the holder of this number shows a pass.
    pub(super) fn pass_shown(&mut self, item: usize, ticket: &Ticket) {
        self.lines[item][ticket.lane.index()].restored.insert(ticket.number);
    }

    /// Checks after an admission that the capacity is not exceeded.
    pub(super) async fn check_capacity(
        &self,
        store: &MemoryStore,
        id: &ItemId,
    ) -> Result<(), Violation> {
        let Some(item) = store.item(id).await.unwrap() else {
            return Ok(());
        };
        let entered = store.counts(std::slice::from_ref(id)).await.unwrap()[0].entered;
        if item.policy.max_active.is_some_and(|most| entered > u64::from(most)) {
            return Err(format!("{entered} entries, {:?} allowed", item.policy.max_active));
        }
        if item.policy.admit_up_to_stock && entered > u64::from(item.stock) {
            return Err(format!("{entered} entries, {} in stock", item.stock));
        }
        Ok(())
    }

    pub(super) fn check_one_ticket_per_user(
        tickets: &[(Ticket, TicketState)],
    ) -> Result<(), Violation> {
        let mut holders = HashMap::new();
        for (ticket, state) in tickets {
            if matches!(state, TicketState::Live(_))
                && let Some(other) = holders.insert(&ticket.user, ticket)
            {
                return Err(format!("{} holds {other:?} and {ticket:?}", ticket.user));
            }
        }
        Ok(())
    }
}

impl TrackedLine {
    fn mark(event: &TicketEvent) -> (Number, bool) {
        (event.number(), matches!(event, TicketEvent::Ended { .. }))
    }

    fn check_events<'a>(
        &mut self,
        events: impl Iterator<Item = &'a TicketEvent>,
    ) -> Result<(), Violation> {
        for event in events {
            let mark @ (_, closed) = Self::mark(event);
            if !self.seen_events.insert(mark) {
                continue;
            }
            if !closed {
                self.admissions += 1;
                if !self.restored.contains(&event.number()) {
                    self.in_order(event.number())?;
                }
            }
        }
        Ok(())
    }

    /// Another draw gives other ranks to the numbers of its cohort.
    fn follow_cohort(&mut self, snapshot: &LineSnapshot) {
        let cohort = snapshot.cohort();
        if cohort != self.cohort {
            (self.cohort, self.frontier, self.positions) = (cohort, None, BTreeMap::new());
        }
    }

    fn rank(&self, number: Number) -> Rank {
        self.cohort.as_ref().map_or(number.rank(), |cohort| cohort.rank(number))
    }

    fn number(&self, rank: Rank) -> Number {
        self.cohort.as_ref().map_or(rank.number(), |cohort| cohort.number(rank))
    }

    /// Checks that tickets are admitted in order of their ranks, except after a missed turn and after a loss.
    fn in_order(&mut self, number: Number) -> Result<(), Violation> {
        let late = self.skipped.remove(&number) || Some(number) <= self.base;
        let rank = self.rank(number);
        if Some(rank) < self.highest_admitted && !late {
            return Err(format!("{number} was admitted after {:?}", self.highest_admitted));
        }
        self.highest_admitted = self.highest_admitted.max(Some(rank));
        Ok(())
    }

    fn no_ticket_is_lost(&mut self, counts: &LaneCounts) -> Result<(), Violation> {
        let there = counts.waiting + counts.returning + counts.missed + counts.entered;
        if counts.totals.joined != there + counts.totals.ended {
            return Err(format!("joined is not the sum of live and ended tickets: {counts:?}"));
        }
        if std::mem::take(&mut self.baseline_unknown) {
            self.admissions = counts.totals.admitted;
        }
        if counts.totals.admitted != self.admissions {
            let events = self.admissions;
            return Err(format!("{} admissions, but {events} events", counts.totals.admitted));
        }
        Ok(())
    }

    fn frontier_moves_forward(&mut self, snapshot: &LineSnapshot) -> Result<(), Violation> {
        if self.frontier.is_some_and(|before| snapshot.frontier < before) {
            return Err(format!(
                "the frontier went from {:?} to {}",
                self.frontier, snapshot.frontier
            ));
        }
        // A number below the frontier that was not admitted missed its turn or ended.
        let base = snapshot.base.rank();
        let before = self.frontier.unwrap_or(base).max(base);
        let passed = (before.0..snapshot.frontier.0).map(|rank| self.number(Rank(rank)));
        let was_admitted = |number: &Number| self.seen_events.contains(&(*number, false));
        let skipped: Vec<_> = passed.filter(|number| !was_admitted(number)).collect();
        self.skipped.extend(skipped);
        (self.frontier, self.base) = (Some(snapshot.frontier), Some(snapshot.base));
        Ok(())
    }

    /// Checks that all numbers between frontier and tail wait except the departed, and below the base the
    /// reclaimed.
    fn waiting_numbers_are_dense(&self, snapshot: &LineSnapshot) -> Result<(), Violation> {
        let (departed, reclaimed) = self.read(snapshot);
        let gone = departed.count_between(snapshot.frontier, snapshot.tail.next().rank());
        let span = snapshot.tail.next().0 - snapshot.frontier.0;
        let back = reclaimed.len();
        if span - gone + back != snapshot.waiting {
            let waiting = snapshot.waiting;
            return Err(format!("{span} numbers, {gone} departed, {back} back, {waiting} waiting"));
        }
        Ok(())
    }

    /// Checks that no position grows, except when a user returns to the front or reclaims a lost number.
    fn positions_do_not_grow(
        &mut self,
        snapshot: &LineSnapshot,
        counts: &LaneCounts,
    ) -> Result<(), Violation> {
        let (departed, reclaimed) = self.read(snapshot);
        let ranks = snapshot.frontier.0..=snapshot.tail.0;
        let waiting = ranks.map(Rank).filter(|rank| !departed.contains(*rank));
        let served_before = counts.returning + reclaimed.len();
        let position =
            |rank| line_rules::position(served_before, snapshot.frontier, &departed, rank);
        let now: BTreeMap<_, _> = waiting.map(|rank| (self.number(rank), position(rank))).collect();
        if served_before <= self.served_before {
            for (number, position) in &now {
                if self.positions.get(number).is_some_and(|before| position > before) {
                    return Err(format!(
                        "{number} went from {:?} to {position}",
                        self.positions[number]
                    ));
                }
            }
        }
        (self.positions, self.served_before) = (now, served_before);
        Ok(())
    }

    /// Reads the changes of a snapshot like a pod.
    fn read(&self, snapshot: &LineSnapshot) -> (Departed, Reclaimed) {
        let (mut departed, mut reclaimed) =
            (Departed::new(snapshot.base.rank()), Reclaimed::default());
        for (from, to) in &snapshot.reclaimed {
            (from.0..=to.0).for_each(|number| reclaimed.insert(self.rank(Number(number))));
        }
        for number in &snapshot.departed {
            if *number > snapshot.base {
                departed.insert(self.rank(*number));
            }
            reclaimed.remove(self.rank(*number));
        }
        reclaimed.prune_below(snapshot.front);
        (departed, reclaimed)
    }
}

async fn outboxes(harness: &ModelHarness<'_>) -> Vec<OutboxBatch> {
    let mut events = Vec::new();
    for partition in 0..PARTITIONS {
        events.extend(harness.memory.outbox_read(partition, None, 1_000_000).await.unwrap());
    }
    events
}
