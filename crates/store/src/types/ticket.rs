use daegi_domain::{EndReason, Invitation, JoinRefusal, Lane, Millis, Number, Ticket, UserId};

use crate::limits::LEAVE_WINDOW_MS;

/// A user who joins a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneJoin {
    /// The user.
    pub user: UserId,
    /// The code that lets the user into the lane; `None` if the user has another proof.
    pub invitation: Option<Invitation>,
}

/// The outcome of a join of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinOutcome {
    /// The user has a live ticket.
    Ticket {
        /// The lane that issued the ticket.
        lane: Lane,
        /// The ticket's number.
        number: Number,
        /// Whether this call issued it.
        is_new: bool,
        /// Its state.
        state: LiveState,
    },
    /// The user got no ticket.
    Refused(JoinRefusal),
}

/// The state of a ticket that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveState {
    /// In the line.
    Waiting {
        /// How many tickets are served before it, plus one. `None` before the draw of a lobby, and for
        /// tickets of a drawn cohort: pods compute those positions from a snapshot.
        position: Option<u64>,
    },
    /// In the entry set.
    Entered {
        /// When the ticket was admitted.
        admitted_at: Millis,
        /// When the entry expires.
        expires_at: Millis,
    },
}

/// How often one user may leave one line within [`LEAVE_WINDOW_MS`] and still join it again. Each
/// ticket costs a number and two events, so the store must refuse a client that joins and leaves in
/// a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaveLimit(pub u32);

impl Default for LeaveLimit {
    fn default() -> Self {
        Self(5)
    }
}

impl LeaveLimit {
    /// Returns how much of the window one leave uses, in milliseconds; 0 if there is no limit.
    #[must_use]
    pub fn cost_ms(self) -> Millis {
        LEAVE_WINDOW_MS.checked_div(self.0.into()).unwrap_or(0)
    }
}

/// The state of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketState {
    /// It has not ended.
    Live(LiveState),
    /// It ended.
    Ended(EndReason),
    /// It belongs to the line before a restart.
    Restarted,
    /// Its item was removed.
    ItemRemoved,
    /// The store has no data of the item: it never existed, or it was lost and may be read again.
    ItemUnknown,
}

/// The outcome of ending a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndOutcome {
    /// This call ended it.
    Ended,
    /// It had ended before, or was not in a state that this call can end.
    AlreadyEnded,
    /// The store has no data of the item: it never existed, or it was lost and may be read again.
    ItemUnknown,
}

impl EndOutcome {
    /// Whether this call ended the ticket.
    #[must_use]
    pub fn is_ended(self) -> bool {
        self == Self::Ended
    }
}

/// An entry that a valid pass proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryProof {
    /// The ticket that was admitted.
    pub ticket: Ticket,
    /// When the ticket was admitted.
    pub at: Millis,
    /// When the entry expires.
    pub expires_at: Millis,
}
