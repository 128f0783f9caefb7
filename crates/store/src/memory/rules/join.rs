use std::collections::HashMap;

use daegi_domain::{EndReason, Lane, Millis, Number, OnRejoin, Settings, UserId, line_rules};

use super::reclaim::StoreIdentity;
use super::resolve::{live_state, return_to_line};
use crate::limits::LEAVE_WINDOW_MS;
use crate::memory::item_lines::ItemLines;
use crate::memory::line::{ItemState, Line};
use crate::memory::outbox::{PendingEvents, StepEvents};
use crate::types::{JoinOutcome, JoinRefusal, LaneJoin, LiveState};

/// Joins users to a lane.
pub(in crate::memory) struct JoinCall<'a> {
    pub(in crate::memory) lines: &'a mut ItemLines,
    pub(in crate::memory) lane: Lane,
    pub(in crate::memory) settings: &'a Settings,
    /// How many tickets may be in the lines of all lanes.
    pub(in crate::memory) max_waiting: u64,
    pub(in crate::memory) store: StoreIdentity,
    pub(in crate::memory) now: Millis,
    pub(in crate::memory) events: &'a mut StepEvents,
}

impl JoinCall<'_> {
    pub(in crate::memory) fn run(mut self, joins: &[LaneJoin]) -> Vec<JoinOutcome> {
        let (lane, store, now) = (self.lane, self.store, self.now);
        self.lines.begin(lane, store.run_id, now);
        if may_join(self.lines.shared(), now).is_ok() {
            self.lines.with(lane, |line| line.detect_data_loss(store, now));
        }
        let mut by_user: HashMap<&UserId, JoinOutcome> = HashMap::new();
        let mut outcomes = Vec::with_capacity(joins.len());
        for join in joins {
            let outcome = match by_user.get(&join.user) {
                Some(outcome) => as_existing(outcome),
                None => self.join_one(join),
            };
            by_user.insert(&join.user, outcome.clone());
            outcomes.push(outcome);
        }
        let first_new = outcomes.iter().find_map(|outcome| match outcome {
            JoinOutcome::Ticket { number, is_new: true, .. } => Some(*number),
            _ => None,
        });
        if let Some(first) = first_new {
            self.lines.with(lane, |line| line.liveness.record_slice_start(first, now));
        }
        outcomes
    }

    fn join_one(&mut self, join: &LaneJoin) -> JoinOutcome {
        let (user, now) = (&join.user, self.now);
        let admissible = may_join(self.lines.shared(), now);
        let wait_ms = leave_penalty_ms(self.lines.shared(), user, self.store, now);
        let may_replace =
            admissible.is_ok() && wait_ms == 0 && self.lines.in_line() <= self.max_waiting;
        if let Some(outcome) = self.existing_ticket(join, admissible.is_ok(), may_replace) {
            return outcome;
        }
        if let Err(refusal) = admissible {
            return JoinOutcome::Refused(refusal);
        }
        if wait_ms > 0 {
            return JoinOutcome::Refused(JoinRefusal::LeftTooOften { wait_ms });
        }
        let occupancy = self.lines.occupancy(now);
        let item = &self.lines.shared().item;
        let is_direct = line_rules::admits_directly(item, &occupancy, self.settings, now);
        if !is_direct && self.lines.in_line() >= self.max_waiting {
            return JoinOutcome::Refused(JoinRefusal::LineFull);
        }
        if !self.redeem(join) {
            return JoinOutcome::Refused(JoinRefusal::InvitationUsed);
        }
        let events = self.events.of_lane(self.lane);
        let issued =
            self.lines.with(self.lane, |line| issue_ticket(line, user, is_direct, now, events));
        // `run` has created the line of the lane.
        issued.unwrap_or(JoinOutcome::Refused(JoinRefusal::NotFound))
    }

    /// Returns the ticket that the user has in any lane. If the user may take a new one (`may_join`), a
    /// ticket whose time has passed ends here. With `may_replace`, a ticket in the line ends, too: with the
    /// policy `requeue`, or if the user moves to another lane.
    fn existing_ticket(
        &mut self,
        join: &LaneJoin,
        may_join: bool,
        may_replace: bool,
    ) -> Option<JoinOutcome> {
        let (now, user) = (self.now, &join.user);
        for lane in std::iter::once(self.lane).chain(self.lines.lanes()) {
            let events = self.events.of_lane(lane);
            let find = |line: &mut Line| existing_ticket(line, user, may_join, now, events);
            let Some(outcome) = self.lines.with(lane, find).flatten() else { continue };
            let waits =
                matches!(outcome, JoinOutcome::Ticket { state: LiveState::Waiting { .. }, .. });
            let is_requeued = self.lane.is_standard()
                && lane == self.lane
                && self.lines.shared().item.policy.on_rejoin == OnRejoin::Requeue;
            let moves = !self.lane.is_standard() && lane != self.lane;
            if !waits || !may_replace || !(is_requeued || moves) {
                return Some(outcome);
            }
            if !self.redeem(join) {
                return Some(JoinOutcome::Refused(JoinRefusal::InvitationUsed));
            }
            let (store, events) = (self.store, self.events.of_lane(lane));
            self.lines.with(lane, |line| {
                count_leave(line, user, store, now);
                replace_ticket(line, user, now, events);
            });
            return None;
        }
        None
    }

    /// Uses the invitation of a join, once per user. Returns false if it has no uses left.
    fn redeem(&mut self, LaneJoin { user, invitation }: &LaneJoin) -> bool {
        let Some(invitation) = invitation else { return true };
        let redemptions = &mut self.lines.standard.shared.redemptions;
        let users = redemptions.entry(invitation.id).or_default();
        if !users.contains(user) && users.len() >= invitation.uses as usize {
            return false;
        }
        users.insert(user.clone());
        true
    }
}

/// Issues a new ticket, which is admitted at once if `is_direct`.
fn issue_ticket(
    line: &mut Line,
    user: &UserId,
    is_direct: bool,
    now: Millis,
    events: &mut PendingEvents,
) -> JoinOutcome {
    line.follow_clock(now);
    line.tail = line.tail.next();
    line.totals.joined += 1;
    let number = line.tail;
    if is_direct {
        line.shared.direct_admissions += 1;
        // No ticket of the cohort waits, and this number is behind it.
        line.skip_departed_ranks(now);
        line.record_progress(1, now);
        line.admit(user.clone(), number, now, events);
    } else {
        line.waiting.insert(user.clone(), number);
    }
    let (lane, state) = (line.lane, live_state(line, user, number, now));
    JoinOutcome::Ticket { lane, number, is_new: true, state }
}

/// Ends the ticket of a user in the line, who takes a new one.
fn replace_ticket(line: &mut Line, user: &UserId, now: Millis, events: &mut PendingEvents) {
    let number = line.waiting.number_of(user).or(line.returning.number_of(user));
    line.remove_waiting(user);
    line.returning.remove(user);
    if let Some(number) = number {
        line.end_ticket(user.clone(), number, EndReason::Replaced, now, events);
    }
}

/// Returns the outcome for the second request of a user in one batch: the same ticket, not a new one.
fn as_existing(outcome: &JoinOutcome) -> JoinOutcome {
    match outcome {
        JoinOutcome::Ticket { lane, number, state, .. } => {
            JoinOutcome::Ticket { lane: *lane, number: *number, is_new: false, state: *state }
        }
        refused @ JoinOutcome::Refused(_) => refused.clone(),
    }
}

fn may_join(shared: &ItemState, now: Millis) -> Result<(), JoinRefusal> {
    if shared.removed {
        Err(JoinRefusal::NotFound)
    } else {
        line_rules::may_join(&shared.item, now)
    }
}

/// Returns how long a user who left this line too often must wait; 0 if the user may join.
fn leave_penalty_ms(
    shared: &ItemState,
    user: &UserId,
    store: StoreIdentity,
    now: Millis,
) -> Millis {
    let cost = store.leave_limit.cost_ms();
    match shared.leaves.get(user).filter(|_| cost > 0) {
        Some(counted_until) => counted_until.saturating_sub(now + LEAVE_WINDOW_MS - cost),
        None => 0,
    }
}

/// Counts a leave against the limit of one user.
pub(super) fn count_leave(line: &mut Line, user: &UserId, store: StoreIdentity, now: Millis) {
    let cost = store.leave_limit.cost_ms();
    if cost == 0 {
        return;
    }
    let counted_until = line.shared.leaves.get(user).unwrap_or(0);
    line.shared.leaves.remove(counted_until, user);
    let counted_until = counted_until.max(now) + cost;
    line.shared.leaves.insert(counted_until, user.clone(), counted_until);
    line.shared.leaves.due(now, 10);
}

/// Returns the ticket that the user has in this line. If the user may take a new one (`may_join`), a ticket
/// whose time has passed ends here.
fn existing_ticket(
    line: &mut Line,
    user: &UserId,
    may_join: bool,
    now: Millis,
    events: &mut PendingEvents,
) -> Option<JoinOutcome> {
    if let Some(entry) = line.entered.get(user) {
        if entry.expires_at > now {
            return Some(existing(line, user, entry.number, now));
        }
        if may_join {
            line.entered.remove(user);
            line.end_ticket(user.clone(), entry.number, EndReason::Expired, now, events);
        }
        return None;
    }
    let number = number_in_line(line, user, may_join, now, events)?;
    Some(existing(line, user, number, now))
}

/// Returns the number of a user in the line. A ticket that missed its turn returns, if it still may.
fn number_in_line(
    line: &mut Line,
    user: &UserId,
    may_join: bool,
    now: Millis,
    events: &mut PendingEvents,
) -> Option<Number> {
    if let Some(number) = line.waiting.number_of(user).or(line.returning.number_of(user)) {
        return Some(number);
    }
    let missed = line.missed.get(user)?;
    if !line.is_missed_over(missed, now) {
        return_to_line(line, user, missed, now);
        return Some(missed.number);
    }
    if may_join {
        line.missed.remove(missed.until, user);
        line.end_ticket(user.clone(), missed.number, EndReason::Abandoned, now, events);
    }
    None
}

fn existing(line: &Line, user: &UserId, number: Number, now: Millis) -> JoinOutcome {
    let (lane, state) = (line.lane, live_state(line, user, number, now));
    JoinOutcome::Ticket { lane, number, is_new: false, state }
}
