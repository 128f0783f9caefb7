//! When the store lost what it had. What may differ then is written in `docs/RECOVERY.md`: who was
//! inside is forgotten, and so are ends; events that nobody had read are gone; whoever asks again
//! stands where they stood. Nothing else may.

use super::ways::Ways;
use crate::History;
use crate::history::{FaultKind, Millis, Setup, Told};

/// All losses of a history. Between two of them lies an era, in which nothing is forgiven.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// In order.
    all: Vec<Loss>,
    old_news: Millis,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loss {
    pub(super) from: Millis,
    to: Millis,
    /// Whether nothing was left, items included.
    total: bool,
    /// What happened until then was known to others.
    published: Millis,
    /// Orders that were given until then had taken effect, and that was known to others.
    ordered: Millis,
}

impl Losses {
    pub(super) fn of(setup: &Setup, history: &History) -> Self {
        let ways = Ways::of(setup, history);
        let lost = history.faults.iter().filter(|fault| FaultKind::loses(fault.what));
        let all = lost.map(|fault| Loss {
            from: fault.from,
            to: fault.to,
            total: fault.what.forgets_items(),
            published: ways.published(fault.from),
            ordered: ways.ordered(fault.from),
        });
        Self { all: all.collect(), old_news: setup.old_news }
    }

    /// In which era a moment is.
    pub(super) fn era(&self, at: Millis) -> usize {
        self.all.iter().filter(|loss| loss.to <= at).count()
    }

    /// In which era something happened.
    pub(super) fn era_of(&self, told: &Told) -> usize {
        self.era(told.taken())
    }

    pub(super) fn last_era(&self) -> usize {
        self.all.len()
    }

    /// Whether there was one between two moments.
    pub(super) fn between(&self, first: Millis, second: Millis) -> bool {
        self.all.iter().any(|loss| loss.to >= first && loss.from <= second)
    }

    /// Whether nothing of one era was left in the other: not even who led.
    pub(super) fn are_total(&self, first: usize, second: usize) -> bool {
        self.all[first..second].iter().all(|loss| loss.total)
    }

    /// Whether items may not be known at this moment, because they are not back yet.
    pub(super) fn hid_items(&self, at: Millis, back: Millis) -> bool {
        let hidden = |loss: &Loss| loss.total && loss.from <= at && at <= loss.to + back;
        self.all.iter().any(hidden)
    }

    /// Those that may have taken along what somebody heard of at this moment. A number that was asked
    /// for later has lost nothing, and what was published before is known.
    pub(super) fn around(&self, born: Millis, heard: Millis) -> impl Iterator<Item = &Loss> {
        let memory = self.old_news;
        self.all.iter().filter(move |loss| {
            born < loss.to && loss.published <= heard && heard <= loss.to + memory
        })
    }

    /// Whether an order that was given at this moment may have been carried out and be forgotten.
    pub(super) fn took_order(&self, given: Millis) -> bool {
        self.all.iter().any(|loss| loss.ordered <= given && given <= loss.to)
    }

    /// Whether what is said at this moment cannot be a memory of the era before.
    pub(super) fn is_fresh(&self, asked: Millis) -> bool {
        self.all.iter().all(|loss| asked < loss.from || asked >= loss.to + self.old_news)
    }
}
