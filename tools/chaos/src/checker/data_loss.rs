//! When the store lost data, and what that explains. By `docs/RECOVERY.md` a data loss may remove entries, ends and unpublished
//! events, and users reclaim their numbers when they poll. Nothing else may change.

use super::delivery_windows::DeliveryWindows;
use super::responses::ITEM_RECOVERY_MS;
use crate::History;
use crate::history::{Fault, FaultKind, Millis, ObservedEvent, Setup};

/// All data losses of a history. The time between two of them is an era, within which no rule is relaxed.
#[derive(Debug, Default)]
pub(super) struct DataLosses {
    /// In order of time.
    all: Vec<DataLoss>,
    max_staleness: Millis,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct DataLoss {
    pub(super) from: Millis,
    to: Millis,
    /// Whether all data was lost, items included.
    total: bool,
    /// Until when items may be unknown after a total loss.
    items_unknown_until: Millis,
    /// Everything committed before this time was published.
    published: Millis,
    /// Orders published before this time had taken effect, and their events were published.
    ordered: Millis,
}

impl DataLosses {
    pub(super) fn from_history(setup: &Setup, history: &History) -> Self {
        let windows = DeliveryWindows::from_history(setup, history);
        let lost = history.faults.iter().filter(|fault| FaultKind::loses_data(fault.what));
        let all = lost.map(|fault| DataLoss {
            from: fault.from,
            to: fault.to,
            total: fault.what.loses_items(),
            items_unknown_until: items_unknown_until(history, fault),
            published: windows.published(fault.from),
            ordered: windows.ordered(fault.from),
        });
        Self { all: all.collect(), max_staleness: setup.max_staleness }
    }

    /// The era of a time.
    pub(super) fn era(&self, at: Millis) -> usize {
        self.all.iter().filter(|loss| loss.to <= at).count()
    }

    /// The era in which an event was committed.
    pub(super) fn era_of(&self, event: &ObservedEvent) -> usize {
        self.era(event.committed_at())
    }

    pub(super) fn last_era(&self) -> usize {
        self.all.len()
    }

    /// Whether data was lost between two times.
    pub(super) fn between(&self, first: Millis, second: Millis) -> bool {
        self.all.iter().any(|loss| loss.to >= first && loss.from <= second)
    }

    /// Whether all losses between two eras were total, so that not even the leader record remained.
    pub(super) fn are_total(&self, first: usize, second: usize) -> bool {
        self.all[first..second].iter().all(|loss| loss.total)
    }

    /// Whether an item may be unknown at this time because it is not yet restored.
    pub(super) fn may_hide_items(&self, at: Millis) -> bool {
        let hidden =
            |loss: &DataLoss| loss.total && loss.from <= at && at <= loss.items_unknown_until;
        self.all.iter().any(hidden)
    }

    /// The losses that may have removed a state change that was observed at this time. Numbers requested later and events
    /// published earlier are not affected.
    pub(super) fn covering(
        &self,
        first_request: Millis,
        observed_at: Millis,
    ) -> impl Iterator<Item = &DataLoss> {
        let memory = self.max_staleness;
        self.all.iter().filter(move |loss| {
            first_request < loss.to
                && loss.published <= observed_at
                && observed_at <= loss.to + memory
        })
    }

    /// Whether an order published at this time may have taken effect and then been lost.
    pub(super) fn may_lose_order(&self, given: Millis) -> bool {
        self.all.iter().any(|loss| loss.ordered <= given && given <= loss.to)
    }

    /// Whether the event of an opening after `opens_at`, which was observed at this time, may be lost.
    pub(super) fn may_lose_opening(&self, opens_at: Millis, observed_at: Millis) -> bool {
        self.all.iter().any(|loss| opens_at < loss.to && loss.published <= observed_at)
    }

    /// Whether a reply at this time cannot come from a snapshot of the previous era.
    pub(super) fn is_fresh(&self, asked: Millis) -> bool {
        self.all.iter().all(|loss| asked < loss.from || asked >= loss.to + self.max_staleness)
    }

    /// Whether a reply at this time cannot come from a snapshot of before `event`.
    pub(super) fn is_settled_after(&self, event: Millis, asked: Millis) -> bool {
        asked >= event + self.max_staleness
    }
}

/// Returns until when items may be unknown after a loss: [`ITEM_RECOVERY_MS`], and as long again after each fault of Kafka or of a
/// consumer that begins before they are back, because both restore them.
fn items_unknown_until(history: &History, loss: &Fault) -> Millis {
    let restores = |fault: &&Fault| fault.target == "kafka" || fault.target.starts_with("consumer");
    let mut faults: Vec<_> = history.faults.iter().filter(restores).collect();
    faults.sort_unstable_by_key(|fault| fault.from);
    let extend = |until: Millis, fault: &Fault| match fault.to > loss.from && fault.from <= until {
        true => until.max(fault.to + ITEM_RECOVERY_MS),
        false => until,
    };
    faults.into_iter().fold(loss.to + ITEM_RECOVERY_MS, extend)
}
