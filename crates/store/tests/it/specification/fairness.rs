//! What must hold after every step, whoever runs the line. Judged on the specification alone:
//! Redis answers the same, or the history has failed already.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use daegi_domain::{Departed, ItemId, LineEvent, Number, Reclaimed, UserId, line};
use daegi_store::{
    Counts, DepartedCursor, LineSnapshot, MemoryStore, OutboxBatch, Standing, Store,
};

use super::world::{World, Wrong};
use crate::support::PARTITIONS;

#[derive(Default)]
pub(super) struct Fairness {
    lines: Vec<Watched>,
}

/// What is remembered of one line.
#[derive(Default)]
struct Watched {
    frontier: Option<Number>,
    /// Whoever is not behind it was there before a loss.
    base: Option<Number>,
    /// Events already judged, by (number, closed or not).
    heard: BTreeSet<(Number, bool)>,
    activated: u64,
    /// Whether it is not known yet how many were let in before.
    anew: bool,
    /// Numbers whose holder showed a pass: their turn came before.
    reentered: BTreeSet<Number>,
    /// The highest number ever let in.
    served: Option<Number>,
    /// Numbers that were passed over once: they may be let in after higher ones.
    passed_over: BTreeSet<Number>,
    /// The last position of every waiting number, and how many of old were ahead of them.
    positions: BTreeMap<Number, u64>,
    ahead: u64,
}

impl Fairness {
    pub(super) fn new(lines: usize) -> Self {
        Self { lines: (0..lines).map(|_| Watched::default()).collect() }
    }

    pub(super) async fn judge(&mut self, world: &World<'_>) -> Result<(), Wrong> {
        let events = outboxes(world).await;
        for (watched, item) in self.lines.iter_mut().zip(&world.items) {
            let mine = events.iter().filter(|batch| batch.item == *item);
            watched.hear(mine.flat_map(|batch| &batch.events))?;
            let counts = world.memory.counts(std::slice::from_ref(item)).await.unwrap().pop();
            let snapshot = world.memory.snapshot(item, DepartedCursor::default()).await.unwrap();
            if let (Some(counts), Some(snapshot)) = (counts, snapshot) {
                watched.nobody_is_lost(&counts)?;
                watched.frontier_moves_forward(&snapshot)?;
                watched.line_is_dense(&snapshot)?;
                watched.positions_shrink(&snapshot, &counts)?;
            }
        }
        Ok(())
    }

    /// After a loss only what is left counts.
    pub(super) async fn begin_anew(&mut self, world: &World<'_>) {
        let events = outboxes(world).await;
        for (watched, item) in self.lines.iter_mut().zip(&world.items) {
            let mine = events.iter().filter(|batch| batch.item == *item);
            let heard = mine.flat_map(|batch| &batch.events).map(Watched::mark);
            (watched.heard, watched.anew) = (heard.collect(), true);
        }
    }

    /// Somebody shows a pass of this number.
    pub(super) fn shows_pass(&mut self, line: usize, number: Number) {
        self.lines[line].reentered.insert(number);
    }

    /// After somebody was let in, no more people are inside than allowed.
    pub(super) async fn check_capacity(
        &self,
        store: &MemoryStore,
        id: &ItemId,
    ) -> Result<(), Wrong> {
        let Some(item) = store.item(id).await.unwrap() else {
            return Ok(());
        };
        let inside = store.counts(std::slice::from_ref(id)).await.unwrap()[0].entered;
        if item.policy.max_active.is_some_and(|most| inside > u64::from(most)) {
            return Err(format!("{inside} inside, {:?} allowed", item.policy.max_active));
        }
        if item.policy.admit_up_to_stock && inside > u64::from(item.stock) {
            return Err(format!("{inside} inside, {} in stock", item.stock));
        }
        Ok(())
    }

    pub(super) fn check_one_place_each(
        tickets: &[(UserId, Number)],
        standings: &[Standing],
    ) -> Result<(), Wrong> {
        let mut holders = HashMap::new();
        for ((user, number), standing) in tickets.iter().zip(standings) {
            if matches!(standing, Standing::At(_))
                && let Some(other) = holders.insert(user, number)
            {
                return Err(format!("{user} holds {other} and {number}"));
            }
        }
        Ok(())
    }
}

impl Watched {
    fn mark(event: &LineEvent) -> (Number, bool) {
        (event.number(), matches!(event, LineEvent::Closed { .. }))
    }

    fn hear<'a>(&mut self, events: impl Iterator<Item = &'a LineEvent>) -> Result<(), Wrong> {
        for event in events {
            let mark @ (_, closed) = Self::mark(event);
            if !self.heard.insert(mark) {
                continue;
            }
            if !closed {
                self.activated += 1;
                if !self.reentered.contains(&event.number()) {
                    self.in_order(event.number())?;
                }
            }
        }
        Ok(())
    }

    /// Numbers are let in in order, but for those who were passed over and came back, and those
    /// who were lost and came late.
    fn in_order(&mut self, number: Number) -> Result<(), Wrong> {
        let late = self.passed_over.remove(&number) || Some(number) <= self.base;
        if Some(number) < self.served && !late {
            return Err(format!("{number} was let in after {:?}", self.served));
        }
        self.served = self.served.max(Some(number));
        Ok(())
    }

    fn nobody_is_lost(&mut self, counts: &Counts) -> Result<(), Wrong> {
        let there = counts.waiting + counts.returning + counts.missed + counts.entered;
        if counts.totals.joined != there + counts.totals.ended {
            return Err(format!("joined is not the sum of where people are: {counts:?}"));
        }
        if std::mem::take(&mut self.anew) {
            self.activated = counts.totals.admitted;
        }
        if counts.totals.admitted != self.activated {
            let told = self.activated;
            return Err(format!("{} were let in, {told} events say so", counts.totals.admitted));
        }
        Ok(())
    }

    fn frontier_moves_forward(&mut self, snapshot: &LineSnapshot) -> Result<(), Wrong> {
        if self.frontier.is_some_and(|before| snapshot.frontier < before) {
            return Err(format!(
                "the frontier went from {:?} to {}",
                self.frontier, snapshot.frontier
            ));
        }
        // Whoever is behind the frontier now without having been let in was passed over.
        let before = self.frontier.unwrap_or(snapshot.base).max(snapshot.base);
        let passed = (before.0..snapshot.frontier.0).map(Number);
        let heard = &self.heard;
        self.passed_over.extend(passed.filter(|number| !heard.contains(&(*number, false))));
        (self.frontier, self.base) = (Some(snapshot.frontier), Some(snapshot.base));
        Ok(())
    }

    /// Between frontier and tail everybody waits, but for the departed; below the base whoever was
    /// taken back.
    fn line_is_dense(&self, snapshot: &LineSnapshot) -> Result<(), Wrong> {
        let (departed, reclaimed) = read(snapshot);
        let gone = departed.count_between(snapshot.frontier, snapshot.tail.next());
        let span = snapshot.tail.next().0 - snapshot.frontier.0;
        let back = reclaimed.len();
        if span - gone + back != snapshot.waiting {
            let waiting = snapshot.waiting;
            return Err(format!("{span} numbers, {gone} departed, {back} back, {waiting} waiting"));
        }
        Ok(())
    }

    /// A position never grows unless somebody came back to the front, or is back after a loss.
    fn positions_shrink(&mut self, snapshot: &LineSnapshot, counts: &Counts) -> Result<(), Wrong> {
        let (departed, reclaimed) = read(snapshot);
        let numbers = snapshot.frontier.0..=snapshot.tail.0;
        let waiting = numbers.map(Number).filter(|number| !departed.contains(*number));
        let ahead = counts.returning + reclaimed.len();
        let now: BTreeMap<_, _> = waiting
            .map(|number| (number, line::position(ahead, snapshot.frontier, &departed, number)))
            .collect();
        if ahead <= self.ahead {
            for (number, position) in &now {
                if self.positions.get(number).is_some_and(|before| position > before) {
                    return Err(format!(
                        "{number} went from {:?} to {position}",
                        self.positions[number]
                    ));
                }
            }
        }
        (self.positions, self.ahead) = (now, ahead);
        Ok(())
    }
}

async fn outboxes(world: &World<'_>) -> Vec<OutboxBatch> {
    let mut events = Vec::new();
    for partition in 0..PARTITIONS {
        events.extend(world.memory.outbox_read(partition, None, 1_000_000).await.unwrap());
    }
    events
}

/// A snapshot read from its beginning, as a pod reads it.
fn read(snapshot: &LineSnapshot) -> (Departed, Reclaimed) {
    let (mut departed, mut reclaimed) = (Departed::new(snapshot.base), Reclaimed::default());
    snapshot.reclaimed.iter().for_each(|(from, to)| reclaimed.add(*from, *to));
    for number in &snapshot.departed {
        if *number > snapshot.base {
            departed.insert(*number);
        }
        reclaimed.remove(*number);
    }
    reclaimed.forget_below(snapshot.front);
    (departed, reclaimed)
}
