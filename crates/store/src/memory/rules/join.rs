use std::collections::HashMap;

use daegi_domain::{EndReason, Millis, Number, OnRejoin, Settings, UserId, line_rules};

use super::reclaim::StoreIdentity;
use super::resolve::{live_state, return_to_line};
use crate::limits::LEAVE_WINDOW_MS;
use crate::memory::line::Line;
use crate::memory::outbox::PendingEvents;
use crate::types::{JoinOutcome, JoinRefusal};

pub(in crate::memory) fn join(
    line: &mut Line,
    users: &[UserId],
    settings: &Settings,
    max_waiting: u64,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> Vec<JoinOutcome> {
    if may_join(line, now).is_ok() {
        line.detect_data_loss(store, now);
    }
    let mut by_user: HashMap<&UserId, JoinOutcome> = HashMap::new();
    let mut outcomes = Vec::with_capacity(users.len());
    for user in users {
        let outcome = match by_user.get(user) {
            Some(outcome) => as_existing(outcome),
            None => join_one(line, user, settings, max_waiting, store, now, events),
        };
        by_user.insert(user, outcome.clone());
        outcomes.push(outcome);
    }
    let first_new = outcomes.iter().find_map(|outcome| match outcome {
        JoinOutcome::Ticket { number, is_new: true, .. } => Some(*number),
        _ => None,
    });
    if let Some(first) = first_new {
        line.liveness.record_slice_start(first, now);
    }
    outcomes
}

/// Returns the outcome for the second request of a user in one batch: the same ticket, not a new one.
fn as_existing(outcome: &JoinOutcome) -> JoinOutcome {
    match outcome {
        JoinOutcome::Ticket { number, state, .. } => {
            JoinOutcome::Ticket { number: *number, is_new: false, state: *state }
        }
        refused @ JoinOutcome::Refused(_) => refused.clone(),
    }
}

fn join_one(
    line: &mut Line,
    user: &UserId,
    settings: &Settings,
    max_waiting: u64,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> JoinOutcome {
    let admissible = may_join(line, now);
    let wait_ms = leave_penalty_ms(line, user, store, now);
    let may_requeue = admissible.is_ok() && wait_ms == 0 && line.in_line() <= max_waiting;
    let existing = existing_ticket(line, user, admissible.is_ok(), may_requeue, store, now, events);
    if let Some(outcome) = existing {
        return outcome;
    }
    if let Err(refusal) = admissible {
        return JoinOutcome::Refused(refusal);
    }
    if wait_ms > 0 {
        return JoinOutcome::Refused(JoinRefusal::LeftTooOften { wait_ms });
    }
    let is_direct = line_rules::admits_directly(&line.item, &line.occupancy(now), settings, now);
    if !is_direct && line.in_line() >= max_waiting {
        return JoinOutcome::Refused(JoinRefusal::LineFull);
    }
    line.follow_clock(now);
    line.tail = line.tail.next();
    line.totals.joined += 1;
    let number = line.tail;
    if is_direct {
        line.direct_admissions += 1;
        line.record_progress(1, now);
        line.admit(user.clone(), number, now, events);
    } else {
        line.waiting.insert(user.clone(), number);
    }
    JoinOutcome::Ticket { number, is_new: true, state: live_state(line, user, number, now) }
}

fn may_join(line: &Line, now: Millis) -> Result<(), JoinRefusal> {
    if line.removed { Err(JoinRefusal::NotFound) } else { line_rules::may_join(&line.item, now) }
}

/// Returns how long a user who left this line too often must wait; 0 if the user may join.
fn leave_penalty_ms(line: &Line, user: &UserId, store: StoreIdentity, now: Millis) -> Millis {
    let cost = store.leave_limit.cost_ms();
    match line.leaves.get(user).filter(|_| cost > 0) {
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
    let counted_until = line.leaves.get(user).unwrap_or(0);
    line.leaves.remove(counted_until, user);
    let counted_until = counted_until.max(now) + cost;
    line.leaves.insert(counted_until, user.clone(), counted_until);
    line.leaves.due(now, 10);
}

/// Returns the ticket that the user has. If the user may take a new one (`may_join`), a ticket
/// whose time has passed ends here; with `may_requeue` and the policy `requeue`, a ticket in the
/// line ends, too.
fn existing_ticket(
    line: &mut Line,
    user: &UserId,
    may_join: bool,
    may_requeue: bool,
    store: StoreIdentity,
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
    if may_requeue && line.item.policy.on_rejoin == OnRejoin::Requeue {
        count_leave(line, user, store, now);
        line.remove_waiting(user);
        line.returning.remove(user);
        line.end_ticket(user.clone(), number, EndReason::Replaced, now, events);
        return None;
    }
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
    JoinOutcome::Ticket { number, is_new: false, state: live_state(line, user, number, now) }
}
