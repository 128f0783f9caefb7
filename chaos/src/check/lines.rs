//! The history by line and by ticket.

use std::collections::{BTreeMap, HashMap};

use super::births::Births;
use super::losses::Losses;
use crate::History;
use crate::history::{Kind, Millis, Setup, Told};

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
    /// Since when numbers may have been there.
    pub(super) births: Births<'a>,
}

/// Something that somebody heard of, and of which no event tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing<'a> {
    pub(super) event: Kind,
    pub(super) item: &'a str,
    pub(super) number: u64,
    pub(super) heard: Millis,
    /// Whether it is an end by time, which people are told before the leader has written it down.
    pub(super) by_time: bool,
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
        let (losses, births) = (Losses::of(setup, history), Births::of(history));
        let mut lines = Self { losses, births, ..Self::default() };
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

    /// Whether the store may have lost the event before anybody could read it.
    pub(super) fn took_along(&self, missing: Missing<'_>) -> bool {
        let born = self.births.earliest(missing.item, missing.number);
        let mut losses = self.losses.around(born, missing.heard);
        losses.any(|loss| !self.published_since(missing, loss.from))
    }

    /// Whether a later event of that topic and line was published, and so all before it.
    fn published_since(&self, missing: Missing<'_>, until: Millis) -> bool {
        let later = |told: &&Told| {
            let taken = told.taken();
            // A leader's round ends what is over first; what others do says nothing of that.
            let tells = !missing.by_time || told.epoch.is_some();
            tells && told.event == missing.event && missing.heard < taken && taken < until
        };
        self.events.get(missing.item).is_some_and(|events| events.iter().any(later))
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

    /// Whether it had ended at this moment.
    pub(super) fn had_ended(&self, at: Millis) -> bool {
        let mut ends = self.lives().filter_map(|life| life.closed);
        ends.any(|closed| closed.taken().max(closed.at) <= at)
    }
}

/// Whether a ticket ends like this when its time is up, which its holder may know first.
pub(super) fn ends_by_time(status: Option<&str>) -> bool {
    matches!(status, Some("EXPIRED" | "ABANDONED"))
}
