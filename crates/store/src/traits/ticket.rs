use std::fmt::Debug;

use async_trait::async_trait;
use daegi_domain::{EndReason, ItemId, Lane, LivenessPage, Millis, Settings, Ticket, UserId};

use crate::Result;
use crate::types::{
    ChangeCursor, EndOutcome, EntryProof, JoinOutcome, LaneJoin, LineCounts, LineSnapshot,
    TicketState,
};

/// Tickets: join, poll, leave, complete.
#[async_trait]
pub trait TicketStore: Debug + Send + Sync + 'static {
    /// Joins users in this order, one outcome each; at most 1000 per call. After a fail-over the
    /// next number is above every number that may have been lost with it. A number's clock
    /// ([`daegi_domain::Number::issued_at_ms`]) is at most [`daegi_domain::MAX_CLOCK_LAG_MS`]
    /// behind `now`. `settings` apply only if the store has no copy of them: with the policy `auto`
    /// the quota of a tick also limits the direct admissions between two ticks. New tickets beyond
    /// the policy's `max_waiting` or the limits of the store are refused, in the order of `users`;
    /// users who have a ticket keep it, in whichever lane it is. A user who left the line too often is refused, see
    /// [`crate::LeaveLimit`].
    async fn join(
        &self,
        id: &ItemId,
        users: &[UserId],
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<JoinOutcome>>;

    /// Joins users to a lane; the same as [`TicketStore::join`] for the standard lane, except that a user
    /// who waits in another lane moves: the ticket there ends as [`EndReason::Replaced`], and the move
    /// counts as a leave. A move that would be refused leaves the ticket as it is. A new ticket
    /// uses the invitation once per user, in the same step; an invitation without uses left is refused. The
    /// policy `requeue` does not apply.
    async fn join_lane(
        &self,
        id: &ItemId,
        lane: Lane,
        joins: &[LaneJoin],
        settings: &Settings,
        now: Millis,
    ) -> Result<Vec<JoinOutcome>>;

    /// Returns what a pod needs to answer polls of a lane, or `None` if there is no such item.
    async fn snapshot(
        &self,
        id: &ItemId,
        lane: Lane,
        cursor: ChangeCursor,
    ) -> Result<Option<LineSnapshot>>;

    /// Marks numbers of a lane as seen. Not one atomic step across pages, which is harmless: marks only add.
    async fn mark_seen(
        &self,
        id: &ItemId,
        lane: Lane,
        pages: &[LivenessPage],
        now: Millis,
    ) -> Result<()>;

    /// Returns the state of these tickets of one lane of an item. The caller must have verified their tokens.
    /// A ticket that missed its turn and may return moves to the returning ones, which are served
    /// before the line. A ticket whose number the store lost is reclaimed at its old position, and
    /// the first reclaimed ticket starts the time in which the line admits none. A number counts as
    /// lost only if there is evidence of a loss: another server continues the line, a process knows
    /// an earlier generation, or an operator declared the loss. Otherwise the number belongs to
    /// another store and is [`TicketState::Restarted`].
    async fn resolve(&self, tickets: &[Ticket], now: Millis) -> Result<Vec<TicketState>>;

    /// Uses a handover code of a ticket that was issued at this time. Returns whether it works: no code that was
    /// issued then or later was used. The store remembers a use for twice [`daegi_domain::HANDOVER_LIFETIME_MS`], after
    /// which the code has expired on every clock: one small record per ticket.
    async fn use_handover(&self, ticket: &Ticket, issued_at: Millis, now: Millis) -> Result<bool>;

    /// Returns when the handover code of a ticket that was used last was issued, while the store remembers it.
    async fn used_handover(&self, ticket: &Ticket, now: Millis) -> Result<Option<Millis>>;

    /// Admits a ticket again whose genuine pass proves that it was admitted, if the store lost that
    /// admission; otherwise does the same as [`TicketStore::resolve`]. The event is written again,
    /// with the same id.
    async fn restore_entry(&self, entry: &EntryProof, now: Millis) -> Result<TicketState>;

    /// Ends a ticket because its user leaves the line or gives the entry back.
    async fn leave(&self, ticket: &Ticket, now: Millis) -> Result<EndOutcome>;

    /// Ends an entry ([`EndReason::Completed`], or [`EndReason::Left`] for a cancelled order).
    /// Returns [`EndOutcome::AlreadyEnded`] if this ticket is not in the entry set. A ticket that the
    /// store lost ends, too.
    async fn complete(&self, ticket: &Ticket, reason: EndReason, now: Millis)
    -> Result<EndOutcome>;

    /// Records that these tickets of one lane of an item ended before the store lost data, as another source
    /// reports, such as Kafka's `token.closed`. A number that was reclaimed meanwhile and waits
    /// leaves the line without an event. A ticket that was admitted again stays as it is. Returns
    /// false if the store has no data of the item or of the lane. One atomic step per
    /// [`crate::MAX_USERS_PER_CALL`] tickets.
    async fn note_ended(&self, ended: &[(Ticket, EndReason)], now: Millis) -> Result<bool>;

    /// Counts the tickets of these lines by state; unknown lines are left out. Not atomic across lines.
    async fn counts(&self, ids: &[ItemId]) -> Result<Vec<LineCounts>>;
}
