use daegi_domain::{EndReason, Millis, Number, Ticket, UserId};

use super::reclaim::{self, StoreIdentity};
use crate::memory::line::{Line, Missed};
use crate::memory::outbox::PendingEvents;
use crate::types::{LiveState, TicketState};

pub(in crate::memory) fn resolve(
    line: &mut Line,
    ticket: &Ticket,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> TicketState {
    let (user, number) = (&ticket.user, ticket.number);
    if let Some(entry) = line.entered.get_number(user, number) {
        return match entry.expires_at > now {
            true => TicketState::Live(live_state(line, user, number, now)),
            false => TicketState::Ended(EndReason::Expired),
        };
    }
    if line.shared.removed {
        return TicketState::ItemRemoved;
    }
    if number < line.valid_from {
        return TicketState::Restarted;
    }
    if let Some(missed) = line.missed_number(user, number) {
        if line.is_missed_over(missed, now) {
            return TicketState::Ended(EndReason::Abandoned);
        }
        return_to_line(line, user, missed, now);
    }
    if line.waiting.holds(user, number) || line.returning.holds(user, number) {
        return TicketState::Live(live_state(line, user, number, now));
    }
    match line.end_reason(number) {
        Some(reason) => TicketState::Ended(reason),
        None => reclaim::resolve_unknown(line, user, number, store, now, events),
    }
}

/// Returns the state of a ticket that is live.
pub(super) fn live_state(line: &Line, user: &UserId, number: Number, now: Millis) -> LiveState {
    if let Some(entry) = line.entered.get(user) {
        LiveState::Entered { admitted_at: entry.admitted_at, expires_at: entry.expires_at }
    } else if line.returning.number_of(user).is_some() {
        LiveState::Waiting { position: Some(line.returning.count_below(number) + 1) }
    } else {
        LiveState::Waiting { position: line.known_position(number, now) }
    }
}

/// Moves a ticket that missed its turn to the returning ones, which are served first.
pub(super) fn return_to_line(line: &mut Line, user: &UserId, missed: Missed, now: Millis) {
    line.missed.remove(missed.until, user);
    line.returning.insert(user.clone(), missed.number);
    line.liveness.mark(missed.number, now);
}
