//! A line over time, in bounded memory: some 17 KB for each line somebody is in.

use std::collections::{HashMap, VecDeque};

use daegi_domain::{ItemId, Millis, Number};
use daegi_store::Counts;

/// How often a sample is taken.
pub const SAMPLE_MS: Millis = 5_000;

/// How many are kept: half an hour.
const KEPT: usize = 360;

/// A line at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Millis,
    /// How many wait, those who came back included.
    pub waiting: u32,
    /// How many are inside.
    pub entered: u32,
    /// How many numbers the front has passed since the line began.
    pub frontier: u32,
    /// How many numbers were given since the line began.
    pub tail: u32,
    /// How many had joined so far,
    pub joined: u32,
    /// were let in,
    pub admitted: u32,
    /// completed their order,
    pub completed: u32,
    /// did not use their entry in time,
    pub expired: u32,
    /// left by themselves,
    pub left: u32,
    /// or were not seen any more.
    pub abandoned: u32,
}

/// The samples of all lines.
#[derive(Debug, Default)]
pub(super) struct History {
    lines: HashMap<ItemId, VecDeque<Sample>>,
}

impl History {
    pub(super) fn add(&mut self, counts: &[Counts], now: Millis) {
        for line in counts {
            let samples = self.lines.entry(line.item.clone()).or_default();
            samples.push_back(Sample::of(line, now));
            if samples.len() > KEPT {
                samples.pop_front();
            }
        }
        let oldest = now.saturating_sub(KEPT as Millis * SAMPLE_MS);
        self.lines.retain(|_, samples| samples.back().is_some_and(|last| last.at >= oldest));
    }

    /// Lines that somebody was in when they were last looked at.
    pub(super) fn lately(&self, now: Millis) -> impl Iterator<Item = ItemId> {
        let since = now.saturating_sub(3 * SAMPLE_MS);
        let busy = move |last: &Sample| last.at >= since && last.waiting + last.entered > 0;
        let lines = self.lines.iter().filter(move |(_, samples)| samples.back().is_some_and(busy));
        lines.map(|(id, _)| id.clone())
    }

    pub(super) fn samples(&self, id: &ItemId) -> Vec<Sample> {
        self.lines.get(id).map(|samples| samples.iter().copied().collect()).unwrap_or_default()
    }

    pub(super) fn oldest_since(&self, id: &ItemId, since: Millis) -> Option<Sample> {
        let samples = self.lines.get(id)?;
        let later = samples.iter().rev().take_while(|sample| sample.at >= since);
        later.last().copied()
    }
}

impl Sample {
    fn of(line: &Counts, at: Millis) -> Self {
        let passed = |number: Number| small(number.0.saturating_sub(line.base.0));
        Self {
            at,
            waiting: small(line.waiting + line.returning),
            entered: small(line.entered),
            frontier: passed(line.frontier).saturating_sub(1),
            tail: passed(line.tail),
            joined: small(line.totals.joined),
            admitted: small(line.totals.admitted),
            completed: small(line.totals.completed),
            expired: small(line.totals.expired),
            left: small(line.totals.left),
            abandoned: small(line.totals.abandoned),
        }
    }
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use daegi_store::Totals;

    use super::*;

    fn counts(id: &str, waiting: u64, admitted: u64) -> Counts {
        Counts {
            item: ItemId::parse(id).unwrap(),
            waiting,
            returning: 1,
            missed: 0,
            entered: 0,
            base: Number(1000),
            frontier: Number(1001 + admitted),
            tail: Number(1000 + admitted + waiting),
            totals: Totals { admitted, ..Totals::default() },
        }
    }

    #[test]
    fn half_an_hour_is_kept_and_lines_nobody_is_in_are_forgotten() {
        let mut history = History::default();
        let id = ItemId::parse("concert").unwrap();
        history.add(&[counts("gone", 1, 0)], 0);
        for sample in 0..400u64 {
            history.add(&[counts("concert", 7, sample)], sample * SAMPLE_MS);
        }
        let samples = history.samples(&id);
        assert_eq!((samples.len(), samples[0].at), (KEPT, 40 * SAMPLE_MS));
        assert_eq!((samples[0].waiting, samples[0].frontier, samples[0].tail), (8, 40, 47));
        assert_eq!(history.samples(&ItemId::parse("gone").unwrap()), []);
        let since = history.oldest_since(&id, 390 * SAMPLE_MS).unwrap();
        assert_eq!((since.at, since.admitted), (390 * SAMPLE_MS, 390));
        assert_eq!(history.oldest_since(&id, 400 * SAMPLE_MS), None);
    }
}
