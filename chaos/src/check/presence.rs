//! Who was in a line when: a number is from its beginning, and after a loss from the first answer
//! that shows that its holder has asked again.

use std::collections::HashMap;

use super::lines::Lines;
use crate::History;
use crate::history::{Millis, Told};

/// Who was in which line since when, by era.
#[derive(Debug)]
pub(super) struct Presence<'a> {
    /// The era in which a number was first heard of.
    born: HashMap<(&'a str, u64), usize>,
    /// In later eras, when it was back for certain.
    back: HashMap<(&'a str, u64, usize), Millis>,
}

/// Who was let in in one era, in their order.
#[derive(Debug, Default)]
pub(super) struct Admitted<'a> {
    highest: Option<u64>,
    all: Vec<&'a Told>,
}

impl<'a> Presence<'a> {
    pub(super) fn of(history: &'a History, lines: &Lines<'_>) -> Self {
        let losses = &lines.losses;
        let (mut born, mut back) = (HashMap::new(), HashMap::new());
        for call in &history.calls {
            let Some(number) = call.seen().and_then(|seen| seen.number) else { continue };
            let (item, era) = (call.item.as_str(), losses.era(call.from));
            let first = *born.entry((item, number)).or_insert(era);
            if era > first && call.says("WAITING") && losses.is_fresh(call.from) {
                let since = back.entry((item, number, era)).or_insert(call.to);
                *since = call.to.min(*since);
            }
        }
        Self { born, back }
    }

    pub(super) fn born(&self, item: &str, number: u64) -> Option<usize> {
        self.born.get(&(item, number)).copied()
    }

    pub(super) fn back(&self, item: &str, number: u64, era: usize) -> Option<Millis> {
        self.back.get(&(item, number, era)).copied()
    }
}

impl<'a> Admitted<'a> {
    pub(super) fn add(&mut self, told: &'a Told) {
        self.highest = self.highest.max(Some(told.number));
        self.all.push(told);
    }

    pub(super) fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Somebody with a higher number who was let in after this moment.
    pub(super) fn beyond(&self, number: u64, since: Millis) -> Option<u64> {
        let rival = self.all.iter().find(|told| told.number > number && told.at > since);
        rival.map(|told| told.number)
    }
}
