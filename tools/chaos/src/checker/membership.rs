//! Since when a number is in a line: from its first reply, and after a data loss from the first reply that shows that its user has
//! reclaimed it.

use std::collections::HashMap;

use super::lines::Lines;
use crate::History;
use crate::history::{Millis, ObservedEvent, TicketNumber};

/// Since when each number is in its line, by era.
#[derive(Debug)]
pub(super) struct Membership<'a> {
    /// The era of the first reply with the number.
    first_era: HashMap<(&'a str, TicketNumber), usize>,
    /// The first reply with the number.
    first_reply: HashMap<(&'a str, TicketNumber), Millis>,
    /// In later eras, the first reply that proves the number is in line again.
    reclaimed: HashMap<(&'a str, TicketNumber, usize), Millis>,
}

/// The admissions of one era of a lane in commit order, each with its rank: the place in the serving order.
#[derive(Debug, Default)]
pub(super) struct Admitted<'a> {
    highest: Option<(u64, TicketNumber)>,
    all: Vec<(u64, &'a ObservedEvent)>,
}

impl<'a> Membership<'a> {
    pub(super) fn from_history(history: &'a History, lines: &Lines<'_>) -> Self {
        let losses = &lines.losses;
        let (mut first_era, mut reclaimed) = (HashMap::new(), HashMap::new());
        let mut first_reply: HashMap<(&str, TicketNumber), Millis> = HashMap::new();
        for call in &history.calls {
            let Some(number) = call.reply().and_then(|reply| reply.number) else { continue };
            let (item, era) = (call.item.as_str(), losses.era(call.from));
            let first = *first_era.entry((item, number)).or_insert(era);
            let reply = first_reply.entry((item, number)).or_insert(call.to);
            *reply = call.to.min(*reply);
            if era > first && call.says("WAITING") && losses.is_fresh(call.from) {
                let since = reclaimed.entry((item, number, era)).or_insert(call.to);
                *since = call.to.min(*since);
            }
        }
        Self { first_era, first_reply, reclaimed }
    }

    pub(super) fn first_era(&self, item: &str, number: TicketNumber) -> Option<usize> {
        self.first_era.get(&(item, number)).copied()
    }

    pub(super) fn reclaimed(&self, item: &str, number: TicketNumber, era: usize) -> Option<Millis> {
        self.reclaimed.get(&(item, number, era)).copied()
    }
}

impl Membership<'_> {
    /// Since when a number that was admitted in this era certainly waited in it.
    pub(super) fn waits_since(
        &self,
        item: &str,
        number: TicketNumber,
        era: usize,
    ) -> Option<Millis> {
        match self.first_era(item, number)? {
            first if first == era => self.first_reply.get(&(item, number)).copied(),
            _ => self.reclaimed(item, number, era),
        }
    }
}

impl<'a> Admitted<'a> {
    pub(super) fn add(&mut self, rank: u64, event: &'a ObservedEvent) {
        self.highest = self.highest.max(Some((rank, event.number)));
        self.all.push((rank, event));
    }

    /// A ticket of a higher rank that was admitted.
    pub(super) fn above(&self, rank: u64) -> Option<TicketNumber> {
        self.highest.filter(|(highest, _)| *highest > rank).map(|(_, number)| number)
    }

    /// A ticket of a higher rank that was admitted after this time.
    pub(super) fn above_since(&self, rank: u64, since: Millis) -> Option<TicketNumber> {
        let higher = self.all.iter().find(|(other, event)| *other > rank && event.at > since);
        higher.map(|(_, event)| event.number)
    }
}
