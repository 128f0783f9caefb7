use daegi_domain::{EndReason, Guard, Millis, Ticket};

use super::join::count_leave;
use super::reclaim::{self, StoreIdentity};
use crate::memory::line::Line;
use crate::memory::outbox::PendingEvents;
use crate::types::EndOutcome;

pub(in crate::memory) fn leave(
    line: &mut Line,
    ticket: &Ticket,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> EndOutcome {
    let outcome = end_left(line, ticket, store, now, events);
    if outcome.is_ended() {
        count_leave(line, &ticket.user, store, now);
    }
    outcome
}

fn end_left(
    line: &mut Line,
    ticket: &Ticket,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> EndOutcome {
    let (user, number) = (&ticket.user, ticket.number);
    let entry = line.entered.get_number(user, number);
    if end_entry(line, ticket, EndReason::Left, store, now, events).is_ended() {
        // An offline guard accepts the pass until it expires, so the slot stays in use.
        if let Some(entry) = entry.filter(|_| line.item.policy.guard == Guard::Offline) {
            line.leftover.insert(number, entry.expires_at);
        }
        return EndOutcome::Ended;
    }
    let missed = line.missed_number(user, number);
    let is_over = missed.is_some_and(|missed| line.is_missed_over(missed, now));
    if !line.remove_from_line(user, number) {
        return EndOutcome::AlreadyEnded;
    }
    if is_over {
        line.end_ticket(user.clone(), number, EndReason::Abandoned, now, events);
        return EndOutcome::AlreadyEnded;
    }
    line.end_waiting(user.clone(), number, now, events);
    EndOutcome::Ended
}

pub(in crate::memory) fn complete(
    line: &mut Line,
    ticket: &Ticket,
    reason: EndReason,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> EndOutcome {
    let outcome = end_entry(line, ticket, reason, store, now, events);
    if !outcome.is_ended() {
        // The order ended after the user had given the entry back: its slot is free now.
        line.leftover.remove(&ticket.number);
    }
    outcome
}

fn end_entry(
    line: &mut Line,
    ticket: &Ticket,
    reason: EndReason,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> EndOutcome {
    let (user, number) = (&ticket.user, ticket.number);
    let Some(entry) = line.entered.get_number(user, number) else {
        return reclaim::end_unrecorded(line, user, number, reason, store, now, events);
    };
    // An expired entry stays expired, even before the leader removes it, because polls have already
    // returned that.
    let in_time = entry.expires_at > now;
    line.entered.remove(user);
    let reason = if in_time { reason } else { EndReason::Expired };
    line.end_ticket(user.clone(), number, reason, now, events);
    if in_time { EndOutcome::Ended } else { EndOutcome::AlreadyEnded }
}
