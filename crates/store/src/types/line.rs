use daegi_domain::draw::Cohort;
use daegi_domain::{EndReason, Item, ItemId, Number, Rank, Rate};

/// How far a pod has read the changes in the middle of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeCursor {
    /// The line's base when it was read. Another base means that the changes were renumbered.
    pub base: u64,
    /// How many changes were read, counted from the line's beginning.
    pub read: u64,
}

/// What a pod needs to answer polls of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineSnapshot {
    /// The item.
    pub item: Item,
    /// Where the line's counter started, at its beginning or after a data loss. Above it every number
    /// waits that has not departed; at or below it only those in `reclaimed`.
    pub base: Number,
    /// Numbers below this one belong to the line before a restart.
    pub valid_from: Number,
    /// The lowest rank that may wait; one past the tail if none waits. Every rank below it does not wait.
    pub front: Rank,
    /// The same above the base.
    pub frontier: Rank,
    /// The last number issued.
    pub tail: Number,
    /// How many tickets wait.
    pub waiting: u64,
    /// How many tickets returned after a missed turn.
    pub returning: u64,
    /// How many tickets are in the entry set.
    pub entered: u64,
    /// How many tickets have ended so far, for any reason. Grows when an entry ends.
    pub ended: u64,
    /// How fast the line moves.
    pub rate: Rate,
    /// Numbers that departed since the cursor.
    pub departed: Vec<Number>,
    /// Ranges of waiting numbers at or below the base, since the cursor. Numbers that are in `departed`, too,
    /// departed later.
    pub reclaimed: Vec<(Number, Number)>,
    /// The cursor for the next call.
    pub cursor: ChangeCursor,
    /// Whether more changes must be read before this snapshot is exact.
    pub more: bool,
}

impl LineSnapshot {
    /// Returns a number that is not above any waiting number above the base.
    #[must_use]
    pub fn lowest_waiting_number(&self) -> Number {
        let frontier = self.frontier.number();
        match self.cohort() {
            Some(cohort) if cohort.contains(frontier) => cohort.first(),
            _ => frontier,
        }
    }

    /// Returns the drawn cohort, whose tickets are served by rank.
    #[must_use]
    pub fn cohort(&self) -> Option<Cohort> {
        let (range, drawn) = self.item.drawn_cohort()?;
        Some(Cohort::new(range.first, range.size, drawn.seed))
    }

    /// Whether no number at or below the line's base waits.
    #[must_use]
    pub fn front_is_above_base(&self) -> bool {
        self.front > self.base.rank()
    }
}

/// How many tickets of one line are in which state, and the totals since it was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCounts {
    /// The line.
    pub item: ItemId,
    /// Tickets that wait.
    pub waiting: u64,
    /// Tickets that returned after a missed turn.
    pub returning: u64,
    /// Tickets that missed their turn and may return.
    pub missed: u64,
    /// Tickets in the entry set.
    pub entered: u64,
    /// Where the line's counter started.
    pub base: Number,
    /// The lowest waiting number; one past the tail if none waits.
    pub front: Number,
    /// The last number issued.
    pub tail: Number,
    /// Totals since the line was created.
    pub totals: LineTotals,
}

impl LineCounts {
    /// Whether no number at or below the line's base waits.
    #[must_use]
    pub fn front_is_above_base(&self) -> bool {
        self.front > self.base
    }
}

/// Tickets of a line since it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineTotals {
    /// Tickets issued.
    pub joined: u64,
    /// Tickets admitted.
    pub admitted: u64,
    /// Tickets that ended for any reason, restarts of the line included.
    pub ended: u64,
    /// Ended with a completed order.
    pub completed: u64,
    /// Ended because the entry expired.
    pub expired: u64,
    /// Ended because the user left or the order was cancelled.
    pub left: u64,
    /// Ended because the user was absent too long.
    pub abandoned: u64,
}

impl LineTotals {
    pub(crate) fn end(&mut self, reason: EndReason) {
        self.ended += 1;
        match reason {
            EndReason::Completed => self.completed += 1,
            EndReason::Expired => self.expired += 1,
            EndReason::Left => self.left += 1,
            EndReason::Abandoned => self.abandoned += 1,
            EndReason::Replaced => {}
        }
    }
}
