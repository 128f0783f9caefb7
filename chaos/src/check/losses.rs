//! When the store lost what it had. What may differ then is written in `docs/RECOVERY.md`: who was
//! inside is forgotten, and so are ends; events that nobody had read are gone; whoever asks again
//! stands where they stood. Nothing else may.

use crate::History;
use crate::history::{FaultKind, Millis, Setup, Told};

/// So long an event may be on its way to others, while Kafka is away and leaders change.
const ON_ITS_WAY: Millis = 30_000;

/// All losses of a history. Between two of them lies an era, in which nothing is forgiven.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// From when, and until when, in order.
    moments: Vec<(Millis, Millis)>,
    old_news: Millis,
}

impl Losses {
    pub(super) fn of(setup: &Setup, history: &History) -> Self {
        let lost = history.faults.iter().filter(|fault| FaultKind::loses(fault.what));
        let moments = lost.map(|fault| (fault.from, fault.to)).collect();
        Self { moments, old_news: setup.old_news }
    }

    /// In which era a moment is.
    pub(super) fn era(&self, at: Millis) -> usize {
        self.moments.iter().filter(|(_, to)| *to <= at).count()
    }

    /// In which era something happened.
    pub(super) fn era_of(&self, told: &Told) -> usize {
        self.era(told.taken())
    }

    pub(super) fn last_era(&self) -> usize {
        self.moments.len()
    }

    /// Whether there was one between two moments.
    pub(super) fn between(&self, first: Millis, second: Millis) -> bool {
        self.moments.iter().any(|(from, to)| *to >= first && *from <= second)
    }

    /// Whether what somebody heard of at this moment may never have been told to others.
    pub(super) fn took_along(&self, heard: Millis) -> bool {
        let near = |(from, to): &(Millis, Millis)| {
            heard + ON_ITS_WAY >= *from && heard <= *to + self.old_news
        };
        self.moments.iter().any(near)
    }

    /// Whether what is said at this moment cannot be a memory of the era before.
    pub(super) fn is_fresh(&self, asked: Millis) -> bool {
        self.moments.iter().all(|(from, to)| asked < *from || asked >= *to + self.old_news)
    }
}
