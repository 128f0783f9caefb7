//! The history by line and by ticket.

use std::collections::{BTreeMap, HashMap};

use crate::History;
use crate::history::{Kind, Told};

/// What was told of every line.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    /// By item, each event once, as it was heard first, in the order in which they happened.
    pub(super) events: BTreeMap<&'a str, Vec<&'a Told>>,
    /// By item and number.
    pub(super) tickets: HashMap<(&'a str, u64), Ticket<'a>>,
}

/// What was told of a ticket, first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ticket<'a> {
    pub(super) activated: Option<&'a Told>,
    pub(super) closed: Option<&'a Told>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(history: &'a History) -> Self {
        let mut lines = Self::default();
        for told in &history.told {
            let ticket = lines.tickets.entry((&told.item, told.number)).or_default();
            let first = match told.event {
                Kind::Activated => &mut ticket.activated,
                Kind::Closed => &mut ticket.closed,
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

    pub(super) fn ticket(&self, item: &str, number: u64) -> Ticket<'_> {
        self.tickets.get(&(item, number)).copied().unwrap_or_default()
    }

    /// Everybody who was let in, line by line, in this order.
    pub(super) fn activated(&self) -> impl Iterator<Item = &Told> {
        let all = self.events.values().flatten().copied();
        all.filter(|told| told.event == Kind::Activated)
    }
}
