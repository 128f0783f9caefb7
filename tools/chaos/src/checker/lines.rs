//! The history grouped by line and by ticket.

use std::collections::{BTreeMap, HashMap};

use super::data_loss::DataLosses;
use super::first_requests::FirstRequests;
use crate::History;
use crate::history::{EventKind, Millis, ObservedEvent, Setup, TicketNumber};

/// The events of every line.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    /// By item, without repeats within an era, in commit order.
    pub(super) events: BTreeMap<&'a str, Vec<&'a ObservedEvent>>,
    /// By item and number.
    pub(super) tickets: HashMap<&'a str, HashMap<TicketNumber, Ticket<'a>>>,
    /// When the store lost data.
    pub(super) losses: DataLosses,
    /// The earliest time of each number.
    pub(super) first_requests: FirstRequests<'a>,
}

/// An observed state change without an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing<'a> {
    pub(super) event: EventKind,
    pub(super) item: &'a str,
    pub(super) number: TicketNumber,
    pub(super) observed_at: Millis,
    /// Whether it is an end by time, which a pod may report before the leader has stored it.
    pub(super) by_time: bool,
}

/// The events of a ticket by era.
#[derive(Debug, Default)]
pub(super) struct Ticket<'a>(BTreeMap<usize, TicketEvents<'a>>);

/// The first events of a ticket in one era.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TicketEvents<'a> {
    pub(super) activated: Option<&'a ObservedEvent>,
    pub(super) closed: Option<&'a ObservedEvent>,
}

impl<'a> Lines<'a> {
    pub(super) fn from_history(setup: &Setup, history: &'a History) -> Self {
        let (losses, first_requests) =
            (DataLosses::from_history(setup, history), FirstRequests::from_history(history));
        let mut lines = Self { losses, first_requests, ..Self::default() };
        for event in &history.events {
            let line = lines.tickets.entry(&event.item).or_default();
            let ticket = line.entry(event.number).or_default();
            let events = ticket.0.entry(lines.losses.era_of(event)).or_default();
            let first = match event.event {
                EventKind::Activated => &mut events.activated,
                EventKind::Closed => &mut events.closed,
            };
            if first.is_none() {
                *first = Some(event);
                lines.events.entry(&event.item).or_default().push(event);
            }
        }
        for events in lines.events.values_mut() {
            events.sort_by_key(|event| &event.sequence);
        }
        lines
    }

    pub(super) fn ticket(&self, item: &str, number: TicketNumber) -> &Ticket<'a> {
        const NONE: &Ticket<'static> = &Ticket(BTreeMap::new());
        self.tickets.get(item).and_then(|line| line.get(&number)).unwrap_or(NONE)
    }

    /// Whether the store may have lost the event before it was published.
    pub(super) fn may_have_lost(&self, missing: Missing<'_>) -> bool {
        let born = self.first_requests.earliest(missing.item, missing.number);
        let mut losses = self.losses.covering(born, missing.observed_at);
        losses.any(|loss| !self.published_since(missing, loss.from))
    }

    /// Whether a later event of the same topic and line was published, which implies that all earlier ones were.
    fn published_since(&self, missing: Missing<'_>, until: Millis) -> bool {
        let later = |event: &&ObservedEvent| {
            let committed_at = event.committed_at();
            // A round of the leader stores expired entries first; events of pods say nothing about that.
            let counts = !missing.by_time || event.epoch.is_some();
            counts
                && event.event == missing.event
                && missing.observed_at < committed_at
                && committed_at < until
        };
        self.events.get(missing.item).is_some_and(|events| events.iter().any(later))
    }

    /// The events of each line by era, because a data loss empties the entry set.
    pub(super) fn eras(&self) -> impl Iterator<Item = (&'a str, &[&'a ObservedEvent])> {
        self.events.iter().flat_map(|(item, events)| {
            let same = |one: &&ObservedEvent, next: &&ObservedEvent| {
                self.losses.era_of(one) == self.losses.era_of(next)
            };
            events.chunk_by(same).map(|events| (*item, events))
        })
    }
}

impl<'a> Ticket<'a> {
    pub(super) fn eras_of_ticket(&self) -> impl Iterator<Item = &TicketEvents<'a>> {
        self.0.values()
    }

    pub(super) fn in_era(&self, era: usize) -> TicketEvents<'a> {
        self.0.get(&era).copied().unwrap_or_default()
    }

    pub(super) fn was_admitted(&self) -> bool {
        self.eras_of_ticket().any(|events| events.activated.is_some())
    }

    /// The end reason in each era in which the ticket ended.
    pub(super) fn reasons(&self) -> impl Iterator<Item = &'a str> {
        self.eras_of_ticket().filter_map(|events| events.closed?.reason.as_deref())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.eras_of_ticket().any(|events| events.closed.is_some())
    }

    /// Whether the ticket had ended at this time.
    pub(super) fn had_ended(&self, at: Millis) -> bool {
        let mut ends = self.eras_of_ticket().filter_map(|events| events.closed);
        ends.any(|closed| closed.committed_at().max(closed.at) <= at)
    }
}

/// Whether this status is an end by time, which the user may know before the event is published.
pub(super) fn ends_by_time(status: Option<&str>) -> bool {
    matches!(status, Some("EXPIRED" | "ABANDONED"))
}
