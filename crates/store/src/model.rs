//! What goes into a store and comes out of it.

use daegi_domain::{EndReason, Item, ItemId, LineEvent, Millis, Number, Rate, UserId};

/// The term of a leader. Zero never leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(pub u64);

/// What became of a change of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It was not there before.
    Created(Item),
    /// It was there and is changed now.
    Updated(Item),
    /// The change is not newer than what is stored.
    Stale,
}

/// What became of something a product service said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewsOutcome {
    /// The item was not there before.
    Created,
    /// It was there and is changed now.
    Updated,
    /// It is gone, its line has ended.
    Removed,
    /// It was to go, and was not there.
    NotFound,
    /// What was said is not newer than what is stored.
    Stale,
}

/// How far a store has come with a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Catalogue {
    /// Nobody has begun to read it, or what was read is lost.
    Unread,
    /// Somebody reads it.
    Reading,
    /// All of it was read once.
    Read,
}

/// What became of a change of policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyChange {
    /// Done.
    Changed(Box<Item>),
    /// Somebody else changed the item meanwhile: read it again.
    Conflict,
    /// No such item.
    NotFound,
}

/// The answer to one person who joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joined {
    /// In the line, or let in.
    At {
        /// The ticket's number.
        number: Number,
        /// Whether this call gave it.
        new: bool,
        /// Where that is.
        place: Place,
    },
    /// Not let into the line.
    Refused(Refusal),
}

/// Where a ticket stands while it is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the line; the first is at 1.
    Waiting {
        /// How many people are served first, plus one.
        position: u64,
    },
    /// In the entry set.
    Entered {
        /// Since when.
        at: Millis,
        /// Until when.
        expires_at: Millis,
    },
}

/// Why a person cannot join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No such item.
    NotFound,
    /// Its line is switched off.
    Disabled,
    /// Nothing left.
    SoldOut,
    /// As many tickets wait as may, in this line or in the whole store.
    LineFull,
    /// The store has little memory left.
    StoreFull,
    /// The user left this line more often than [`LeaveLimit`] allows.
    LeftTooOften {
        /// How long until they may join again.
        wait_ms: Millis,
    },
}

/// How often one user may leave one line within [`crate::LEAVE_WINDOW_MS`] and still join it
/// again. Each ticket costs a number and two events, so that a client that joins and leaves in a loop
/// must be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaveLimit(pub u32);

impl Default for LeaveLimit {
    fn default() -> Self {
        Self(5)
    }
}

impl LeaveLimit {
    /// How much of the window one leave uses up; 0 if there is no limit.
    #[must_use]
    pub fn cost_ms(self) -> Millis {
        crate::LEAVE_WINDOW_MS.checked_div(self.0.into()).unwrap_or(0)
    }
}

/// What became of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Alive.
    At(Place),
    /// Over.
    Ended(EndReason),
    /// From before the line was restarted.
    Restarted,
    /// There is no such item any more.
    NotFound,
    /// The store knows nothing of such an item: it never was, or it was lost and may come back.
    Forgotten,
}

/// What came of ending a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// This call has ended it.
    Done,
    /// It had ended before, or was never where it could be ended.
    Over,
    /// The store knows nothing of such an item: it never was, or it was lost and may come back.
    Forgotten,
}

impl Closing {
    /// Whether this call has ended the ticket.
    #[must_use]
    pub fn is_done(self) -> bool {
        self == Self::Done
    }
}

/// An entry that a pass is proof of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reentry {
    /// Who was let in.
    pub user: UserId,
    /// With this number.
    pub number: Number,
    /// Since when.
    pub at: Millis,
    /// Until when.
    pub expires_at: Millis,
}

/// How far a pod has read what happened in the middle of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DepartedCursor {
    /// The line's base when it was read; another base means another line.
    pub base: u64,
    /// How many entries were read, counted from the line's beginning.
    pub read: u64,
}

/// Everything a pod needs to answer polls of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineSnapshot {
    /// The item.
    pub item: Item,
    /// Where the line's counter started, at its beginning or after a loss. Behind it everybody
    /// waits who has not departed; below it only those who are in `reclaimed`.
    pub base: Number,
    /// Numbers below this one belong to a line that was restarted.
    pub valid_from: Number,
    /// The lowest number that waits; one past the tail when nobody does.
    pub front: Number,
    /// The lowest number behind the base that waits; one past the tail when nobody does.
    pub frontier: Number,
    /// The last number given.
    pub tail: Number,
    /// How many wait in the line.
    pub waiting: u64,
    /// How many came back after missing their turn.
    pub returning: u64,
    /// How many are inside.
    pub entered: u64,
    /// How many tickets have ended so far, in whatever way: it grows when an entry ends.
    pub ended: u64,
    /// How fast the line moves.
    pub rate: Rate,
    /// Numbers that departed since the cursor.
    pub departed: Vec<Number>,
    /// Numbers below the base that wait, from and to, since the cursor. Some of them may be among
    /// the departed: those came later.
    pub reclaimed: Vec<(Number, Number)>,
    /// The cursor for the next call.
    pub cursor: DepartedCursor,
    /// Whether more is to be read before this snapshot is exact.
    pub more: bool,
}

impl LineSnapshot {
    /// Whether no number at or below the line's base waits.
    #[must_use]
    pub fn front_is_above_base(&self) -> bool {
        self.front > self.base
    }
}

/// What one admission did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Admission {
    /// How many were let in.
    pub admitted: u32,
    /// How many were put aside because nobody had seen them.
    pub missed: u32,
    /// What is left of the tick's quota.
    pub remaining: u32,
    /// Whether another call in this tick can do more.
    pub more: bool,
    /// Whether the outbox is full: nobody is let in until it drains.
    pub outbox_full: bool,
}

/// What one expiry did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expiry {
    /// Entries that were not used in time.
    pub expired: u32,
    /// People who missed their turn and did not come back.
    pub abandoned: u32,
    /// Whether another call can do more.
    pub more: bool,
    /// Whether the line is still active; if not, it has left the set of active lines.
    pub active: bool,
    /// Whether no number at or below the line's base waits.
    pub front_is_above_base: bool,
}

/// What one step of the sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sweep {
    /// People removed from the line because nobody had seen them for long.
    pub abandoned: u32,
    /// Where the next step begins; 0 at the end of the line.
    pub cursor: Number,
}

/// How many people of one line are where, and what became of all who ever joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// The line.
    pub item: ItemId,
    /// In the line.
    pub waiting: u64,
    /// Back after missing their turn.
    pub returning: u64,
    /// Put aside.
    pub missed: u64,
    /// Inside.
    pub entered: u64,
    /// Where the line's counter started.
    pub base: Number,
    /// The lowest number still waiting; one past the tail when nobody waits.
    pub frontier: Number,
    /// The last number given.
    pub tail: Number,
    /// Since the line was created.
    pub totals: Totals,
}

impl Counts {
    /// Whether no number at or below the line's base waits.
    #[must_use]
    pub fn front_is_above_base(&self) -> bool {
        self.frontier > self.base
    }
}

/// What became of all who ever joined a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Tickets given.
    pub joined: u64,
    /// People let in.
    pub admitted: u64,
    /// Tickets that ended, whatever the reason, restarts of the line included.
    pub ended: u64,
    /// Those of them whose order was completed,
    pub completed: u64,
    /// whose entry was not used in time,
    pub expired: u64,
    /// who left by themselves or cancelled,
    pub left: u64,
    /// and who were not seen any more.
    pub abandoned: u64,
}

impl Totals {
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

/// How full a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Bytes in use.
    pub used: u64,
    /// Bytes it may use; 0 if it has no limit.
    pub limit: u64,
    /// Bytes from which on new tickets are refused; 0 if it has no limit.
    pub high: u64,
}

impl Memory {
    /// Whether so much is used that new tickets are refused.
    #[must_use]
    pub fn is_high(&self) -> bool {
        self.limit > 0 && self.used >= self.high
    }
}

/// What a process says about itself to all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The process.
    pub who: String,
    /// What it says.
    pub text: String,
    /// When it said so.
    pub at: Millis,
}

/// Events of one item that were written in one step, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxBatch {
    /// What to acknowledge.
    pub id: String,
    /// The item.
    pub item: ItemId,
    /// In whose term; none for what people and order services did.
    pub epoch: Option<Epoch>,
    /// What happened.
    pub events: Vec<LineEvent>,
}
