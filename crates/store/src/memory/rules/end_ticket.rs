use daegi_domain::{EndReason, Guard, Millis, Ticket};

use super::join::count_leave;
use super::reclaim::{self, StoreIdentity};
use crate::memory::line::Line;
use crate::memory::outbox::PendingEvents;
use crate::types::EndOutcome;

/// The end of one ticket that a user or an order service requests.
pub(in crate::memory) struct TicketEnd<'a> {
    pub(in crate::memory) line: &'a mut Line,
    pub(in crate::memory) ticket: &'a Ticket,
    pub(in crate::memory) store: StoreIdentity,
    pub(in crate::memory) now: Millis,
    pub(in crate::memory) events: &'a mut PendingEvents,
}

impl TicketEnd<'_> {
    pub(in crate::memory) fn leave(mut self) -> EndOutcome {
        let outcome = self.end_left();
        if outcome.is_ended() {
            count_leave(self.line, &self.ticket.user, self.store, self.now);
        }
        outcome
    }

    pub(in crate::memory) fn complete(mut self, reason: EndReason) -> EndOutcome {
        let outcome = self.end_entry(reason);
        if !outcome.is_ended() {
            // The order ended after the user had given the entry back: its slot is free now.
            self.line.leftover.remove(&self.ticket.number);
        }
        outcome
    }

    fn end_left(&mut self) -> EndOutcome {
        let (user, number) = (&self.ticket.user, self.ticket.number);
        let entry = self.line.entered.get_number(user, number);
        if self.end_entry(EndReason::Left).is_ended() {
            // An offline guard accepts the pass until it expires, so the slot stays in use.
            if let Some(entry) =
                entry.filter(|_| self.line.shared.item.policy.guard == Guard::Offline)
            {
                self.line.leftover.insert(number, entry.expires_at);
            }
            return EndOutcome::Ended;
        }
        let (line, now) = (&mut *self.line, self.now);
        let missed = line.missed_number(user, number);
        let is_over = missed.is_some_and(|missed| line.is_missed_over(missed, now));
        if !line.remove_from_line(user, number) {
            return EndOutcome::AlreadyEnded;
        }
        if is_over {
            line.end_ticket(user.clone(), number, EndReason::Abandoned, now, self.events);
            return EndOutcome::AlreadyEnded;
        }
        line.end_waiting(user.clone(), number, now, self.events);
        EndOutcome::Ended
    }

    fn end_entry(&mut self, reason: EndReason) -> EndOutcome {
        let (user, number, now) = (&self.ticket.user, self.ticket.number, self.now);
        let (line, events) = (&mut *self.line, &mut *self.events);
        let Some(entry) = line.entered.get_number(user, number) else {
            return reclaim::end_unrecorded(line, user, number, reason, self.store, now, events);
        };
        // An expired entry stays expired, even before the leader removes it, because polls have
        // already returned that.
        let in_time = entry.expires_at > now;
        line.entered.remove(user);
        if in_time {
            line.spent += now.saturating_sub(entry.admitted_at);
        }
        let reason = if in_time { reason } else { EndReason::Expired };
        line.end_ticket(user.clone(), number, reason, now, events);
        if in_time { EndOutcome::Ended } else { EndOutcome::AlreadyEnded }
    }
}
