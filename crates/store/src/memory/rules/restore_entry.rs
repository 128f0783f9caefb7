use daegi_domain::Millis;

use super::reclaim::StoreIdentity;
use super::resolve::resolve;
use crate::memory::line::Line;
use crate::memory::outbox::PendingEvents;
use crate::types::{EntryProof, LiveState, TicketState};

/// Admits a ticket again whose pass proves that it was admitted, if the line lost that admission.
pub(in crate::memory) fn restore_entry(
    line: &mut Line,
    entry: &EntryProof,
    store: StoreIdentity,
    now: Millis,
    events: &mut PendingEvents,
) -> TicketState {
    let EntryProof { ticket, at, expires_at } = entry;
    let (user, number) = (&ticket.user, ticket.number);
    if line.entered.get(user).is_some() || line.shared.removed || number < line.valid_from {
        return resolve(line, ticket, store, now, events);
    }
    if number > line.tail && line.has_evidence(store, now) {
        line.advance_past_lost(number, store, now);
    }
    if !line.remove_from_line(user, number) {
        let is_elsewhere = line.shared.live_elsewhere.contains(user);
        if is_elsewhere || !line.is_reclaimable(user, number, store, now) {
            return resolve(line, ticket, store, now, events);
        }
        line.use_lost_range(now);
        line.totals.joined += 1;
    }
    line.admit_until(user.clone(), number, *at, *expires_at, events);
    TicketState::Live(LiveState::Entered { admitted_at: *at, expires_at: *expires_at })
}
