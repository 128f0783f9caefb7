//! Samples of lines over time, in bounded memory: about 17 KB per active line.

use std::collections::{HashMap, VecDeque};

use daegi_domain::{ItemId, Millis, Number};
use daegi_store::LineCounts;

/// Interval between two samples.
pub const SAMPLE_MS: Millis = 5_000;

/// Samples that are kept per line: half an hour.
const MAX_SAMPLES: usize = 360;

/// A line at one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When it was taken.
    pub at: Millis,
    /// Waiting tickets, returning ones included.
    pub waiting: u32,
    /// Entries.
    pub entered: u32,
    /// Numbers that the front has passed since the line began.
    pub frontier: u32,
    /// Numbers that were issued since the line began.
    pub tail: u32,
    /// Tickets that joined so far.
    pub joined: u32,
    /// Tickets that were admitted so far.
    pub admitted: u32,
    /// Entries that completed so far.
    pub completed: u32,
    /// Entries that expired so far.
    pub expired: u32,
    /// Tickets whose user left so far.
    pub left: u32,
    /// Tickets that were abandoned so far.
    pub abandoned: u32,
}

/// The samples of all lines.
#[derive(Debug, Default)]
pub(super) struct History {
    lines: HashMap<ItemId, VecDeque<Sample>>,
}

impl History {
    pub(super) fn add(&mut self, counts: &[LineCounts], now: Millis) {
        for line in counts {
            let samples = self.lines.entry(line.item.clone()).or_default();
            samples.push_back(Sample::new(line, now));
            if samples.len() > MAX_SAMPLES {
                samples.pop_front();
            }
        }
        let oldest = now.saturating_sub(MAX_SAMPLES as Millis * SAMPLE_MS);
        self.lines.retain(|_, samples| samples.back().is_some_and(|last| last.at >= oldest));
    }

    /// Returns lines whose last sample is at most 15 s old and had tickets, so that the history also
    /// shows the end of a line.
    pub(super) fn recently_active(&self, now: Millis) -> impl Iterator<Item = ItemId> {
        let since = now.saturating_sub(3 * SAMPLE_MS);
        let had_tickets = move |last: &Sample| last.at >= since && last.waiting + last.entered > 0;
        let lines =
            self.lines.iter().filter(move |(_, samples)| samples.back().is_some_and(had_tickets));
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
    fn new(line: &LineCounts, at: Millis) -> Self {
        let passed = |number: Number| small(number.0.saturating_sub(line.base.0));
        Self {
            at,
            waiting: small(line.waiting + line.returning),
            entered: small(line.entered),
            frontier: passed(line.front).saturating_sub(1),
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
    use daegi_store::LineTotals;

    use super::*;

    fn counts(id: &str, waiting: u64, admitted: u64) -> LineCounts {
        LineCounts {
            item: ItemId::parse(id).unwrap(),
            waiting,
            returning: 1,
            missed: 0,
            entered: 0,
            base: Number(1000),
            front: Number(1001 + admitted),
            tail: Number(1000 + admitted + waiting),
            totals: LineTotals { admitted, ..LineTotals::default() },
            lanes: Vec::new(),
        }
    }

    #[test]
    fn half_an_hour_is_kept_and_empty_lines_are_dropped() {
        let mut history = History::default();
        let id = ItemId::parse("concert").unwrap();
        history.add(&[counts("gone", 1, 0)], 0);
        for sample in 0..400u64 {
            history.add(&[counts("concert", 7, sample)], sample * SAMPLE_MS);
        }
        let samples = history.samples(&id);
        assert_eq!((samples.len(), samples[0].at), (MAX_SAMPLES, 40 * SAMPLE_MS));
        assert_eq!((samples[0].waiting, samples[0].frontier, samples[0].tail), (8, 40, 47));
        assert_eq!(history.samples(&ItemId::parse("gone").unwrap()), []);
        let since = history.oldest_since(&id, 390 * SAMPLE_MS).unwrap();
        assert_eq!((since.at, since.admitted), (390 * SAMPLE_MS, 390));
        assert_eq!(history.oldest_since(&id, 400 * SAMPLE_MS), None);
    }
}
