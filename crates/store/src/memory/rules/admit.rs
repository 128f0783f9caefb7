use daegi_domain::{EndReason, Millis, Number, Settings, UserId, line_rules};

use crate::limits::{HELD_MS, MAX_USERS_PER_CALL};
use crate::memory::line::{Line, Missed};
use crate::memory::outbox::PendingEvents;
use crate::types::Admission;

pub(in crate::memory) fn admit(
    line: &mut Line,
    quota: u32,
    settings: &Settings,
    min_interval: Millis,
    outbox_room: u64,
    now: Millis,
    events: &mut PendingEvents,
) -> Admission {
    // `last_round_at` in the future means clock skew; ignore it.
    let since = now.saturating_sub(line.last_round_at);
    if since > 0 && since < min_interval {
        return Admission::default();
    }
    if outbox_room == 0 {
        line.stopped = true;
        line.item.held_until = now + HELD_MS + 3 * min_interval;
        return Admission { remaining: quota, outbox_full: true, ..Admission::default() };
    }
    line.item.held_until = 0;
    // Absence does not count while the line can admit no ticket. After a stop each user has the
    // full grace period again, and the speed is measured from the beginning, because the speed
    // before the stop does not predict it.
    let stopped = quota == 0 || line.is_stopped(settings, now);
    if !stopped && line.stopped {
        (line.servable_since, line.moves) = (now, None);
    }
    line.stopped = stopped;
    // Direct admissions since the last round have used their part of the quota.
    let quota = quota.saturating_sub(std::mem::take(&mut line.direct_admissions));
    if line.removed || !line_rules::may_admit(&line.item, now) {
        return Admission { remaining: quota, ..Admission::default() };
    }
    line.last_round_at = now;
    let outbox_room = u32::try_from(outbox_room).unwrap_or(u32::MAX);
    let limit = quota.min(line.free_capacity(now)).min(outbox_room);
    let (mut admitted, mut missed) = (0, 0);
    while admitted < limit && admitted + missed < MAX_USERS_PER_CALL {
        let Some((user, number)) = line.returning.pop().or_else(|| line.pop_admissible(now)) else {
            break;
        };
        if is_present(line, number, now) {
            line.admit(user, number, now, events);
            admitted += 1;
        } else {
            mark_missed(line, user, number, now, events);
            missed += 1;
        }
    }
    if admitted + missed > 0 {
        line.record_progress(admitted + missed, now);
    }
    let has_more = line.returning.len() > 0 || line.has_admissible(now);
    Admission {
        admitted,
        missed,
        remaining: quota - admitted,
        more: has_more && admitted < limit,
        outbox_full: false,
    }
}

fn is_present(line: &Line, number: Number, now: Millis) -> bool {
    let grace = line.item.policy.grace_seconds;
    grace == 0 || !line.absence_counts(grace, now) || line.liveness.was_seen(number, grace, now)
}

fn mark_missed(
    line: &mut Line,
    user: UserId,
    number: Number,
    now: Millis,
    events: &mut PendingEvents,
) {
    let keep = Millis::from(line.item.policy.missed_keep_seconds) * 1000;
    if keep == 0 {
        line.end_ticket(user, number, EndReason::Abandoned, now, events);
    } else {
        line.missed.insert(now + keep, user, Missed { number, until: now + keep });
    }
}
