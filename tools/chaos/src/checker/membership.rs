//! Since when a number is in a line: from its first reply, and after a data loss from the first reply that shows that its user has
//! reclaimed it.

use std::collections::HashMap;

use super::lines::Lines;
use crate::History;
use crate::history::{Millis, ObservedEvent};

/// Since when each number is in its line, by era.
#[derive(Debug)]
pub(super) struct Membership<'a> {
    /// The era of the first reply with the number.
    first_era: HashMap<(&'a str, u64), usize>,
    /// In later eras, the first reply that proves the number is in line again.
    reclaimed: HashMap<(&'a str, u64, usize), Millis>,
}

/// The admissions of one era in commit order.
#[derive(Debug, Default)]
pub(super) struct Admitted<'a> {
    highest: Option<u64>,
    all: Vec<&'a ObservedEvent>,
}

impl<'a> Membership<'a> {
    pub(super) fn from_history(history: &'a History, lines: &Lines<'_>) -> Self {
        let losses = &lines.losses;
        let (mut first_era, mut reclaimed) = (HashMap::new(), HashMap::new());
        for call in &history.calls {
            let Some(number) = call.reply().and_then(|reply| reply.number) else { continue };
            let (item, era) = (call.item.as_str(), losses.era(call.from));
            let first = *first_era.entry((item, number)).or_insert(era);
            if era > first && call.says("WAITING") && losses.is_fresh(call.from) {
                let since = reclaimed.entry((item, number, era)).or_insert(call.to);
                *since = call.to.min(*since);
            }
        }
        Self { first_era, reclaimed }
    }

    pub(super) fn first_era(&self, item: &str, number: u64) -> Option<usize> {
        self.first_era.get(&(item, number)).copied()
    }

    pub(super) fn reclaimed(&self, item: &str, number: u64, era: usize) -> Option<Millis> {
        self.reclaimed.get(&(item, number, era)).copied()
    }
}

impl<'a> Admitted<'a> {
    pub(super) fn add(&mut self, event: &'a ObservedEvent) {
        self.highest = self.highest.max(Some(event.number));
        self.all.push(event);
    }

    pub(super) fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// A higher number that was admitted after this time.
    pub(super) fn beyond(&self, number: u64, since: Millis) -> Option<u64> {
        let higher = self.all.iter().find(|event| event.number > number && event.at > since);
        higher.map(|event| event.number)
    }
}
