//! How well estimates of the wait hold: the last ticket of a line is a sample of the joins, and its range is scored
//! when the front of the line passes its number. In bounded memory: some tickets of some lines.

use std::collections::{HashMap, VecDeque};

use ::metrics::counter;
use daegi_domain::line_rules::line_state;
use daegi_domain::{Eta, ItemId, LineState, Millis, Number, Settings, WaitModel};
use daegi_store::{ChangeCursor, LineSnapshot};

use crate::metrics;

/// Lines that are sampled at a time: those with the most waiting tickets. Each takes one store call.
pub(super) const MAX_LINES: usize = 50;

/// Tickets of a line that wait to be scored.
const MAX_PENDING: usize = 32;

/// Shortest time between two samples of a line, so that the pending ones span a long wait.
const INTERVAL_MS: Millis = 10_000;

/// How many sampled tickets were admitted within the range they were shown at the join.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EstimateTotals {
    /// Admitted between `p10` and `p90`.
    pub within: u64,
    /// Admitted before `p10`.
    pub earlier: u64,
    /// Admitted after `p90`.
    pub later: u64,
}

/// The samples of all lines.
#[derive(Debug, Default)]
pub(super) struct Estimates {
    lines: HashMap<ItemId, LineEstimates>,
}

#[derive(Debug, Default)]
struct LineEstimates {
    pending: VecDeque<Pending>,
    totals: EstimateTotals,
    /// When the line was read last, and what a new ticket would see then.
    at: Millis,
    newcomer: Option<Eta>,
    /// How far the changes of the line were read, so that each is transferred once.
    cursor: ChangeCursor,
}

/// A ticket that joined.
#[derive(Debug, Clone, Copy)]
struct Pending {
    number: Number,
    at: Millis,
    eta: Eta,
}

/// The result of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Within,
    Earlier,
    Later,
}

impl Estimates {
    /// Drops lines that are not sampled any more.
    pub(super) fn retain(&mut self, lines: &[ItemId]) {
        self.lines.retain(|id, _| lines.contains(id));
    }

    /// Scores the samples that the front has passed, and takes a further one. Only the leader counts them in
    /// metrics, because every replica samples.
    pub(super) fn observe(
        &mut self,
        line: &LineSnapshot,
        settings: &Settings,
        now: Millis,
        counts: bool,
    ) {
        let known = self.lines.entry(line.item.id.clone()).or_default();
        let state = line_state(&line.item, line.front_is_above_base(), settings, now);
        let model = WaitModel::new(&line.facts(settings), now);
        let waiting = line.waiting + line.returning;
        known.newcomer =
            model.filter(|_| state == LineState::Open).and_then(|model| model.eta(waiting + 1));
        let eta = model.filter(|_| waiting > 0).and_then(|model| model.eta(waiting));
        if state != LineState::Open || line.cohort().is_some() {
            // A stop is not foreseen, and the ranks of a draw are not numbers.
            known.pending.clear();
        }
        let front = line.front.number();
        while let Some(pending) = known.pending.front().filter(|pending| pending.number < front) {
            let verdict = pending.verdict(known.at, now);
            known.totals.add(verdict);
            if counts {
                counter!(metrics::ESTIMATES, "result" => verdict.label()).increment(1);
            }
            known.pending.pop_front();
        }
        let is_due = known
            .pending
            .back()
            .is_none_or(|last| last.number < line.tail && last.at + INTERVAL_MS <= now);
        if let Some(eta) = eta.filter(|_| is_due && state == LineState::Open && front <= line.tail)
            && line.cohort().is_none()
            && known.pending.len() < MAX_PENDING
        {
            known.pending.push_back(Pending { number: line.tail, at: now, eta });
        }
        (known.at, known.cursor) = (now, line.cursor);
    }

    /// Returns where the next snapshot of a line continues.
    pub(super) fn cursor(&self, id: &ItemId) -> ChangeCursor {
        self.lines.get(id).map(|line| line.cursor).unwrap_or_default()
    }

    pub(super) fn totals(&self, id: &ItemId) -> Option<EstimateTotals> {
        self.lines.get(id).map(|line| line.totals)
    }

    /// Returns what a new ticket would see, if the line was read since `since`.
    pub(super) fn newcomer(&self, id: &ItemId, since: Millis) -> Option<Eta> {
        self.lines.get(id).filter(|line| line.at >= since)?.newcomer
    }
}

impl Pending {
    /// Scores a sample whose number the front passed between `after` and `until`.
    fn verdict(&self, after: Millis, until: Millis) -> Verdict {
        let (least, most) = (after.saturating_sub(self.at), until.saturating_sub(self.at));
        if least > self.eta.p90 * 1_000 {
            Verdict::Later
        } else if most < self.eta.p10 * 1_000 {
            Verdict::Earlier
        } else {
            Verdict::Within
        }
    }
}

impl EstimateTotals {
    fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Within => self.within += 1,
            Verdict::Earlier => self.earlier += 1,
            Verdict::Later => self.later += 1,
        }
    }
}

impl Verdict {
    fn label(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::Earlier => "earlier",
            Self::Later => "later",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_scored_by_when_the_front_may_have_passed_it() {
        let eta = Eta { p10: 50, p50: 60, p90: 70 };
        let pending = Pending { number: Number(7), at: 100_000, eta };
        for (after, until, verdict) in [
            (155_000, 160_000, Verdict::Within),
            (140_000, 149_000, Verdict::Earlier),
            (146_000, 151_000, Verdict::Within),
            (169_000, 174_000, Verdict::Within),
            (171_000, 176_000, Verdict::Later),
        ] {
            assert_eq!(pending.verdict(after, until), verdict, "{after} to {until}");
        }
    }
}
