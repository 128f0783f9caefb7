use daegi_domain::{EndReason, Millis, Number, Settings};

use crate::limits::MAX_USERS_PER_CALL;
use crate::memory::line::Line;
use crate::memory::outbox::PendingEvents;
use crate::types::Sweep;

pub(in crate::memory) fn sweep(
    line: &mut Line,
    cursor: Number,
    settings: &Settings,
    now: Millis,
    events: &mut PendingEvents,
) -> Sweep {
    let finished = |abandoned| Sweep { abandoned, cursor: Number(0) };
    let Some(limit) = line.shared.item.policy.absence_limit_seconds() else {
        return finished(0);
    };
    let stopped = line.is_stopped(settings, now) || line.shared.item.held_until > now;
    if stopped || !line.absence_counts(limit, now) {
        return finished(0);
    }
    let first_recent = line.liveness.first_recent_number(limit, now);
    let examined = line.waiting.from(cursor, MAX_USERS_PER_CALL as usize);
    let is_end_of_line = examined.len() < MAX_USERS_PER_CALL as usize;
    let mut abandoned = 0;
    let mut next = cursor;
    for (user, number) in examined {
        if number >= first_recent {
            return finished(abandoned);
        }
        next = number.next();
        if !line.liveness.was_seen(number, limit, now) {
            line.remove_waiting(&user);
            line.end_ticket(user, number, EndReason::Abandoned, now, events);
            abandoned += 1;
        }
    }
    if is_end_of_line { finished(abandoned) } else { Sweep { abandoned, cursor: next } }
}
