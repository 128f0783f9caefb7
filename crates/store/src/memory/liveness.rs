use std::collections::{BTreeMap, BTreeSet};

use daegi_domain::liveness::{PAGE_NUMBERS, oldest_slice, slice_of};
use daegi_domain::{LivenessPage, Millis, Number};

use crate::limits::LIVENESS_SLICES;

/// Which numbers of a line were seen in which slice of time.
#[derive(Debug, Clone, Default)]
pub(super) struct Liveness {
    /// (slice, first number issued in it). A number counts as seen when it is issued.
    slice_starts: BTreeSet<(u64, Number)>,
    marks: BTreeMap<(u64, u64), LivenessPage>,
}

impl Liveness {
    /// Records the first number that was issued in the slice of `now`.
    pub(super) fn record_slice_start(&mut self, first: Number, now: Millis) {
        let slice = slice_of(now);
        if self.slice_starts.last().is_none_or(|(last, _)| *last < slice) {
            self.slice_starts.insert((slice, first));
            let oldest = slice.saturating_sub(LIVENESS_SLICES);
            self.slice_starts.retain(|(slice, _)| *slice >= oldest);
        }
    }

    pub(super) fn clear_slice_starts(&mut self) {
        self.slice_starts.clear();
    }

    pub(super) fn mark_page(&mut self, page: &LivenessPage, now: Millis) {
        let slice = slice_of(now);
        self.marks
            .entry((slice, page.page))
            .or_insert_with(|| LivenessPage::new(page.page))
            .merge(page);
        let oldest = slice.saturating_sub(LIVENESS_SLICES);
        self.marks.retain(|(slice, _), _| *slice >= oldest);
    }

    pub(super) fn mark(&mut self, number: Number, now: Millis) {
        LivenessPage::of([number]).iter().for_each(|page| self.mark_page(page, now));
    }

    /// Returns the first number issued within the last `seconds`. It and all later ones count as seen.
    pub(super) fn first_recent_number(&self, seconds: u32, now: Millis) -> Number {
        let oldest = (oldest_slice(now, seconds), Number(0));
        self.slice_starts.range(oldest..).next().map_or(Number::MAX, |(_, first)| *first)
    }

    /// Returns whether a number was seen within the last `seconds`. One slice of the future counts too,
    /// because the clocks of pods may be ahead of the leader's.
    pub(super) fn was_seen(&self, number: Number, seconds: u32, now: Millis) -> bool {
        let page = number.0 / PAGE_NUMBERS;
        number >= self.first_recent_number(seconds, now)
            || (oldest_slice(now, seconds)..=slice_of(now) + 1)
                .any(|slice| self.marks.get(&(slice, page)).is_some_and(|page| page.has(number)))
    }
}
