use daegi_domain::draw::Cohort;
use daegi_domain::{
    EndReason, EntryFlow, Item, ItemId, Lane, LaneFacts, Number, Rank, Rate, Settings,
};

/// How far a pod has read the changes in the middle of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeCursor {
    /// The line's base when it was read. Another base means that the changes were renumbered.
    pub base: u64,
    /// How many changes were read, counted from the line's beginning.
    pub read: u64,
}

/// What a pod needs to answer polls of the line of one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineSnapshot {
    /// The item.
    pub item: Item,
    /// The lane. All counts and numbers below are of this lane.
    pub lane: Lane,
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
    /// How many entries ended with a completed order so far.
    pub completed: u64,
    /// How fast the line moves.
    pub rate: Rate,
    /// How entries come and go; `None` until the leader has observed it.
    pub flow: Option<EntryFlow>,
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
    /// Returns the snapshot of a lane that no ticket was issued in.
    pub(crate) fn empty(item: Item, lane: Lane) -> Self {
        Self {
            item,
            lane,
            base: Number(0),
            valid_from: Number(0),
            front: Rank(1),
            frontier: Rank(1),
            tail: Number(0),
            waiting: 0,
            returning: 0,
            entered: 0,
            ended: 0,
            completed: 0,
            rate: Rate::new(Vec::new()),
            flow: None,
            departed: Vec::new(),
            reclaimed: Vec::new(),
            cursor: ChangeCursor::default(),
            more: false,
        }
    }

    /// Returns a number that is not above any waiting number above the base.
    #[must_use]
    pub fn lowest_waiting_number(&self) -> Number {
        let frontier = self.frontier.number();
        match self.cohort() {
            Some(cohort) if cohort.contains(frontier) => cohort.first(),
            _ => frontier,
        }
    }

    /// Returns the drawn cohort, whose tickets are served by rank. Only the standard lane has one.
    #[must_use]
    pub fn cohort(&self) -> Option<Cohort> {
        let (range, drawn) = self.item.drawn_cohort().filter(|_| self.lane.is_standard())?;
        Some(Cohort::new(range.first, range.size, drawn.seed))
    }

    /// Returns what the estimate of the wait depends on.
    #[must_use]
    pub fn facts<'a>(&'a self, settings: &'a Settings) -> LaneFacts<'a> {
        let Self { item, lane, rate, entered, flow, completed, .. } = self;
        LaneFacts {
            item,
            settings,
            lane: *lane,
            rate,
            entered: *entered,
            flow: *flow,
            completed: *completed,
        }
    }

    /// Whether no number at or below the line's base waits.
    #[must_use]
    pub fn front_is_above_base(&self) -> bool {
        self.front > self.base.rank()
    }
}

/// How many tickets of one item are in which state, and the totals since it was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCounts {
    /// The item.
    pub item: ItemId,
    /// Tickets that wait in all lanes.
    pub waiting: u64,
    /// Tickets of all lanes that returned after a missed turn.
    pub returning: u64,
    /// Tickets of all lanes that missed their turn and may return.
    pub missed: u64,
    /// Tickets in the entry sets of all lanes.
    pub entered: u64,
    /// Totals of all lanes since the item was created.
    pub totals: LineTotals,
    /// The counts of each lane, the standard lane first; empty if the policy has no lanes.
    pub lanes: Vec<LaneCounts>,
    /// Where the counter of the standard lane started.
    pub base: Number,
    /// The lowest waiting number of the standard lane; one past the tail if none waits.
    pub front: Number,
    /// The last number issued in the standard lane.
    pub tail: Number,
}

/// How many tickets are in which state, and the totals since the line was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneCounts {
    /// Tickets that wait.
    pub waiting: u64,
    /// Tickets that returned after a missed turn.
    pub returning: u64,
    /// Tickets that missed their turn and may return.
    pub missed: u64,
    /// Tickets in the entry set.
    pub entered: u64,
    /// Totals since the line was created.
    pub totals: LineTotals,
}

impl LineCounts {
    /// Returns the counts of all lanes.
    #[must_use]
    pub fn all_lanes(&self) -> LaneCounts {
        let &Self { waiting, returning, missed, entered, totals, .. } = self;
        LaneCounts { waiting, returning, missed, entered, totals }
    }

    /// Sets the counts of an item that has lanes besides the standard one.
    pub(crate) fn set_lanes(&mut self, lanes: Vec<LaneCounts>) {
        if lanes.len() > 1 {
            let sum = lanes.iter().copied().fold(LaneCounts::default(), LaneCounts::plus);
            let LaneCounts { waiting, returning, missed, entered, totals } = sum;
            (self.waiting, self.returning, self.missed) = (waiting, returning, missed);
            (self.entered, self.totals, self.lanes) = (entered, totals, lanes);
        }
    }

    /// Whether no number at or below the line's base waits.
    #[must_use]
    pub fn front_is_above_base(&self) -> bool {
        self.front > self.base
    }
}

impl LaneCounts {
    fn plus(self, other: Self) -> Self {
        Self {
            waiting: self.waiting + other.waiting,
            returning: self.returning + other.returning,
            missed: self.missed + other.missed,
            entered: self.entered + other.entered,
            totals: self.totals.plus(other.totals),
        }
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
    fn plus(self, other: Self) -> Self {
        Self {
            joined: self.joined + other.joined,
            admitted: self.admitted + other.admitted,
            ended: self.ended + other.ended,
            completed: self.completed + other.completed,
            expired: self.expired + other.expired,
            left: self.left + other.left,
            abandoned: self.abandoned + other.abandoned,
        }
    }

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
