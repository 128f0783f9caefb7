//! Recovery of numbers that the line lost. A ticket whose token verified proves that the store
//! issued its number; see `docs/adr/009-recovery-from-data-loss.md`.

use daegi_domain::{
    Departed, EndReason, MAX_CLOCK_LAG_MS, Millis, Number, Phase, Reclaimed, UserId,
};

use super::resolve::live_state;
use crate::limits::{ENDED_RETENTION_MS, LOSS_GAP, RECLAIM_WINDOW_MS};
use crate::memory::line::{Change, Line};
use crate::memory::outbox::PendingEvents;
use crate::types::{EndOutcome, LeaveLimit, TicketState};

/// The properties of the store that a step on a line depends on.
#[derive(Debug, Clone, Copy)]
pub(in crate::memory) struct StoreIdentity {
    /// Changes with every data loss. In Redis this is the server's run id.
    pub(in crate::memory) run_id: u64,
    /// How long a line that lost data admits no ticket.
    pub(in crate::memory) recovery_hold: Millis,
    /// Until when numbers are reclaimed because the partition lost data.
    pub(in crate::memory) loss_until: Millis,
    pub(in crate::memory) leave_limit: LeaveLimit,
}

impl Line {
    /// Returns whether this number may have been issued before the store lost data.
    fn is_in_lost_range(&self, number: Number) -> bool {
        (self.lost_from..=self.lost_to).contains(&number)
    }

    /// Returns whether the line still reclaims lost numbers. A loss of the partition may be declared
    /// at any time, but it does not reopen a range whose first ends may be deleted. A lane that the policy
    /// does not have serves none.
    fn in_reclaim_window(&self, store: StoreIdentity, now: Millis) -> bool {
        let has_lane = self.lane.index() <= self.shared.item.policy.lanes.len();
        let ends_complete = self.lost_range_used_at.is_none_or(|at| now < at + RECLAIM_WINDOW_MS);
        has_lane && now < self.reclaim_until.max(store.loss_until) && ends_complete
    }

    /// Records when the first number of the lost range may have got an end.
    pub(super) fn use_lost_range(&mut self, at: Millis) {
        self.lost_range_used_at = Some(self.lost_range_used_at.map_or(at, |used| used.min(at)));
    }

    /// Returns whether there is evidence of a data loss: another run of the store continues the line, or
    /// the partition's loss is recorded.
    pub(super) fn has_evidence(&self, store: StoreIdentity, now: Millis) -> bool {
        now < store.loss_until || self.run_id != store.run_id
    }

    /// Returns whether a further loss widens the range of lost numbers instead of starting a new
    /// one: at least half of the reclaim window remains. A loss of the partition counts only for a
    /// line that began around that time, because the ends of all numbers in the range must still be
    /// stored.
    fn widens(&self, store: StoreIdentity, now: Millis) -> bool {
        let soon = now + RECLAIM_WINDOW_MS / 2;
        let remembered_until = self.lost_to.issued_at_ms() + ENDED_RETENTION_MS;
        soon < self.reclaim_until
            || (soon < store.loss_until && store.loss_until <= remembered_until)
    }

    /// Returns whether the end of this number may be deleted after
    /// [`crate::limits::WAITING_END_RETENTION_MS`]. A number whose end is deleted must never be
    /// reclaimed. So the ends of all numbers that are in a lost range or may get into one are kept
    /// for [`ENDED_RETENTION_MS`]: up to the base, while a reclaim window is open, and as long as a
    /// loss may still widen the range that begins with the line. Later losses begin above all
    /// numbers issued before.
    pub(in crate::memory) fn may_forget_early(&self, number: Number, now: Millis) -> bool {
        let widens_until = self.lost_to.issued_at_ms() + ENDED_RETENTION_MS - RECLAIM_WINDOW_MS / 2;
        number > self.base && now >= self.reclaim_until.max(widens_until)
    }

    /// Returns whether this number was lost and its holder has no live ticket.
    pub(super) fn is_reclaimable(
        &self,
        user: &UserId,
        number: Number,
        store: StoreIdentity,
        now: Millis,
    ) -> bool {
        number >= self.valid_from
            && self.is_in_lost_range(number)
            && self.in_reclaim_window(store, now)
            && self.end_reason(number).is_none()
            && !self.has_served_ticket(user)
            && self.waiting.number_of(user).is_none()
            && !self.waiting.contains(number)
    }

    /// Moves the counter past the numbers that may be lost, if another run of the store continues the
    /// line.
    pub(super) fn detect_data_loss(&mut self, store: StoreIdentity, now: Millis) {
        if self.run_id != store.run_id {
            self.advance_past_lost(self.tail, store, now);
        }
    }

    /// Takes over the loss of data that the standard lane's line shows, for a new line of another lane.
    pub(in crate::memory) fn inherit_loss(&mut self, standard: &Self, now: Millis) {
        self.reclaim_until = match standard.run_id == self.run_id {
            true => standard.reclaim_until,
            false => now + RECLAIM_WINDOW_MS,
        };
        self.run_id = standard.run_id;
    }

    /// Continues the counter above every number that may have been issued, `issued` among them.
    pub(super) fn advance_past_lost(&mut self, issued: Number, store: StoreIdentity, now: Millis) {
        if self.widens(store, now) {
            // Numbers issued since the range began get into it, and some of them have ended.
            self.use_lost_range(self.lost_to.issued_at_ms());
        } else {
            (self.lost_from, self.reclaim_until) = (self.tail.next(), now + RECLAIM_WINDOW_MS);
            self.lost_range_used_at = None;
        }
        // Reclaimed tickets may be lost again: restart a running recovery hold with its full
        // duration.
        let is_recovering = self.shared.item.recovering_until > now;
        self.shared.item.recovering_until =
            if is_recovering { now + store.recovery_hold } else { 0 };
        let above = Number(self.tail.max(issued).0 + LOSS_GAP);
        // A gap in the numbers of a cohort takes time to draw, so that it is small in the lobby.
        let is_lobby = self.shared.item.phase(now) == Phase::Lobby;
        self.move_base(if is_lobby { above } else { Number::base_at(now).max(above) });
        self.lost_to = self.base;
        self.shared.item.hold_new_until = now + store.recovery_hold;
        self.run_id = store.run_id;
    }

    /// Continues the counter at the clock if it is more than [`MAX_CLOCK_LAG_MS`] behind, so that a
    /// number encodes its time of issue. No number is lost: the lost range stays as it is. A lobby that has
    /// tickets keeps its counter, because the numbers of a cohort have no gap.
    pub(super) fn follow_clock(&mut self, now: Millis) {
        if self.shared.item.phase(now) == Phase::Lobby && self.in_line() > 0 {
            return;
        }
        let base = Number::base_at(now);
        if base.0.saturating_sub(self.tail.0) > MAX_CLOCK_LAG_MS * Number::PER_MS {
            self.move_base(base);
        }
    }

    /// Continues the counter at `base`. All waiting ranks are below the base afterwards.
    pub(super) fn move_base(&mut self, base: Number) {
        if let Some(first) = self.waiting.first_number_from(self.base.next()) {
            self.changes.push_front(Change::Reclaimed(first, self.tail));
        }
        self.reclaimed = Reclaimed::default();
        for rank in self.waiting.ranks() {
            self.reclaimed.insert_range(rank, rank);
        }
        (self.base, self.tail, self.departed) = (base, base, Departed::new(base.rank()));
    }

    /// Records that a ticket ended before the store lost data. A number that was reclaimed meanwhile
    /// and waits leaves the line without an event; a ticket that was admitted again stays as it is.
    pub(in crate::memory) fn note_ended(
        &mut self,
        user: &UserId,
        number: Number,
        reason: EndReason,
        now: Millis,
    ) {
        let is_entered = self.entered.get_number(user, number).is_some();
        if self.end_reason(number).is_some() || is_entered {
            return;
        }
        if self.is_in_lost_range(number) {
            self.use_lost_range(now);
        }
        self.remember_end(number, reason, now);
        if self.remove_from_line(user, number) {
            self.totals.end(reason);
        }
    }

    /// Returns whether the user is entered, returning or missed: such a ticket is served before any
    /// reclaimed one.
    fn has_served_ticket(&self, user: &UserId) -> bool {
        self.entered.get(user).is_some()
            || self.returning.number_of(user).is_some()
            || self.missed.get(user).is_some()
    }

    /// Starts the recovery hold, during which the line admits no ticket, unless it was started
    /// before.
    fn start_recovery_hold(&mut self, store: StoreIdentity, now: Millis) {
        if self.shared.item.recovering_until == 0 {
            self.shared.item.recovering_until = now + store.recovery_hold;
        }
    }
}

/// Returns the state of a genuine ticket that is neither in the line nor entered and has no stored
/// end.
pub(super) fn resolve_unknown(
    line: &mut Line,
    user: &UserId,
    number: Number,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> TicketState {
    if number > line.tail {
        if !line.has_evidence(store, now) {
            return TicketState::Restarted;
        }
        line.advance_past_lost(number, store, now);
    }
    if !line.is_in_lost_range(number) {
        // The end is past its retention; report it as expired.
        return TicketState::Ended(EndReason::Expired);
    }
    if !line.in_reclaim_window(store, now) || line.waiting.contains(number) {
        return TicketState::Restarted;
    }
    if line.unserved_cohort().is_some_and(|cohort| number < cohort.first) {
        // It would be served before the whole cohort. It was not in the lobby when the cohort was fixed.
        return TicketState::Restarted;
    }
    let waiting = line.waiting.number_of(user);
    let is_elsewhere = line.shared.live_elsewhere.contains(user);
    if is_elsewhere || line.has_served_ticket(user) || waiting.is_some_and(|other| other < number) {
        return TicketState::Ended(EndReason::Replaced);
    }
    if let Some(newer) = waiting {
        line.remove_waiting(user);
        line.end_ticket(user.clone(), newer, EndReason::Replaced, now, events);
    }
    reclaim(line, user, number, store, now);
    TicketState::Live(live_state(line, user, number, now))
}

fn reclaim(line: &mut Line, user: &UserId, number: Number, store: StoreIdentity, now: Millis) {
    line.use_lost_range(now);
    line.waiting.insert(user.clone(), number);
    if line.cohort().is_some_and(|cohort| cohort.contains(number)) {
        // Its rank may have been passed.
        line.served_ranks = 0;
    }
    let rank = line.waiting.rank_of(number);
    line.reclaimed.insert_range(rank, rank);
    line.changes.push_back(Change::Reclaimed(number, number));
    line.totals.joined += 1;
    line.liveness.mark(number, now);
    line.start_recovery_hold(store, now);
}

/// Ends a ticket that the line lost, so that it is never reclaimed.
pub(super) fn end_unrecorded(
    line: &mut Line,
    user: &UserId,
    number: Number,
    reason: EndReason,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> EndOutcome {
    if !line.shared.removed && number > line.tail && line.has_evidence(store, now) {
        line.advance_past_lost(number, store, now);
    }
    if line.shared.removed || !line.is_reclaimable(user, number, store, now) {
        return EndOutcome::AlreadyEnded;
    }
    line.use_lost_range(now);
    line.totals.joined += 1;
    line.end_ticket(user.clone(), number, reason, now, events);
    EndOutcome::Ended
}
