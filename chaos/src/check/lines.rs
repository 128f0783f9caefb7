//! The history by line and by ticket.

use std::collections::{BTreeMap, HashMap};

use super::losses::Losses;
use crate::History;
use crate::history::{Kind, Setup, Told};

/// What was told of every line.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    /// By item, each event once in every era, as it was heard first, in the order in which they
    /// happened.
    pub(super) events: BTreeMap<&'a str, Vec<&'a Told>>,
    /// By item and number.
    pub(super) tickets: HashMap<&'a str, HashMap<u64, Ticket<'a>>>,
    /// When what was told may have been forgotten.
    pub(super) losses: Losses,
}

/// What was told of a ticket, in every era.
#[derive(Debug, Default)]
pub(super) struct Ticket<'a>(BTreeMap<usize, Life<'a>>);

/// What was told of a ticket in one era, first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Life<'a> {
    pub(super) activated: Option<&'a Told>,
    pub(super) closed: Option<&'a Told>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(setup: &Setup, history: &'a History) -> Self {
        let mut lines = Self { losses: Losses::of(setup, history), ..Self::default() };
        for told in &history.told {
            let line = lines.tickets.entry(&told.item).or_default();
            let ticket = line.entry(told.number).or_default();
            let life = ticket.0.entry(lines.losses.era_of(told)).or_default();
            let first = match told.event {
                Kind::Activated => &mut life.activated,
                Kind::Closed => &mut life.closed,
            };
            if first.is_none() {
                *first = Some(told);
                lines.events.entry(&told.item).or_default().push(told);
            }
        }
        for events in lines.events.values_mut() {
            events.sort_by_key(|told| &told.sequence);
        }
        lines
    }

    pub(super) fn ticket(&self, item: &str, number: u64) -> &Ticket<'a> {
        const NONE: &Ticket<'static> = &Ticket(BTreeMap::new());
        self.tickets.get(item).and_then(|line| line.get(&number)).unwrap_or(NONE)
    }

    /// The events of each line, era by era: who is inside is forgotten in between.
    pub(super) fn eras(&self) -> impl Iterator<Item = (&'a str, &[&'a Told])> {
        self.events.iter().flat_map(|(item, events)| {
            let same =
                |one: &&Told, next: &&Told| self.losses.era_of(one) == self.losses.era_of(next);
            events.chunk_by(same).map(|events| (*item, events))
        })
    }
}

impl<'a> Ticket<'a> {
    pub(super) fn lives(&self) -> impl Iterator<Item = &Life<'a>> {
        self.0.values()
    }

    pub(super) fn life(&self, era: usize) -> Life<'a> {
        self.0.get(&era).copied().unwrap_or_default()
    }

    pub(super) fn was_let_in(&self) -> bool {
        self.lives().any(|life| life.activated.is_some())
    }

    /// How it ended, in each era in which it did.
    pub(super) fn reasons(&self) -> impl Iterator<Item = &'a str> {
        self.lives().filter_map(|life| life.closed?.reason.as_deref())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lives().any(|life| life.closed.is_some())
    }
}
