use daegi_domain::{EndReason, Millis, Number, Settings, UserId};

use super::line::{Line, Missed};
use super::outbox::Written;
use super::recovery::Store;
use crate::model::{Admission, Expiry, Sweep};
use crate::{CHUNK, HELD_MS};

pub(super) fn admit(
    line: &mut Line,
    quota: u32,
    settings: &Settings,
    spacing: Millis,
    outbox_room: u64,
    now: Millis,
    written: &mut Written,
) -> Admission {
    // A time to come is another clock's, and says nothing.
    let since = now.saturating_sub(line.served_at);
    if since > 0 && since < spacing {
        return Admission::default();
    }
    if outbox_room == 0 {
        line.stopped = true;
        line.item.held_until = now + HELD_MS + 3 * spacing;
        return Admission { remaining: quota, outbox_full: true, ..Admission::default() };
    }
    line.item.held_until = 0;
    // Absence does not count while the line can admit no ticket, and from then on each user has the
    // full time. The speed before the stop says nothing about the speed from then on.
    let stopped = quota == 0 || line.is_stopped(settings, now);
    if !stopped && line.stopped {
        (line.servable_since, line.moves) = (now, None);
    }
    line.stopped = stopped;
    // Those who passed through since the last tick have used their part of it.
    let quota = quota.saturating_sub(std::mem::take(&mut line.through));
    let idle = Admission { remaining: quota, ..Admission::default() };
    let item = &line.item;
    let stands = !item.enabled || item.stock == 0 || item.paused || item.recovering_until > now;
    if line.removed || stands {
        return idle;
    }
    line.served_at = now;
    let room = line.room(now).min(u32::try_from(outbox_room).unwrap_or(u32::MAX));
    let free = quota.min(room);
    let (mut admitted, mut missed) = (0, 0);
    while admitted < free && admitted + missed < CHUNK {
        let Some((user, number)) = line.returning.pop().or_else(|| line.next(now)) else {
            break;
        };
        if is_here(line, number, now) {
            line.enter(user, number, now, written);
            admitted += 1;
        } else {
            put_aside(line, user, number, now, written);
            missed += 1;
        }
    }
    if admitted + missed > 0 {
        line.moved(admitted + missed, now);
    }
    let people_left = line.returning.len() > 0 || line.has_next(now);
    Admission {
        admitted,
        missed,
        remaining: quota - admitted,
        more: people_left && admitted < free,
        outbox_full: false,
    }
}

fn is_here(line: &Line, number: Number, now: Millis) -> bool {
    let grace = line.item.policy.grace_seconds;
    grace == 0 || !line.absence_counts(grace, now) || line.seen(number, grace, now)
}

fn put_aside(line: &mut Line, user: UserId, number: Number, now: Millis, written: &mut Written) {
    let keep = Millis::from(line.item.policy.missed_keep_seconds) * 1000;
    if keep == 0 {
        line.end(user, number, EndReason::Abandoned, now, written);
    } else {
        line.missed.insert(now + keep, user, Missed { number, until: now + keep });
    }
}

pub(super) fn expire(line: &mut Line, store: Store, now: Millis, written: &mut Written) -> Expiry {
    if !line.removed {
        line.notice_loss(store, now);
    }
    let due = line.entered.due(now, CHUNK);
    let expired = due.entries.len() as u32;
    let missed = match line.absence_counts(line.item.policy.missed_keep_seconds, now) {
        true => line.missed.due(now, CHUNK - due.people),
        false => Vec::new(),
    };
    let abandoned = missed.len() as u32;
    for (user, entry) in due.entries {
        line.end(user, entry.number, EndReason::Expired, now, written);
    }
    for (user, missed) in missed {
        line.end(user, missed.number, EndReason::Abandoned, now, written);
    }
    let forgotten = line.forget_closed(now, CHUNK as usize);
    line.forget_changes(CHUNK as usize);
    line.forget_leftover(now, CHUNK as usize);
    let more = due.more || due.people + abandoned == CHUNK || forgotten == CHUNK as usize;
    let active = line.is_active();
    if !active {
        line.entered.forget_groups();
    }
    let front_is_above_base = line.front() > line.base;
    Expiry { expired, abandoned, more, active, front_is_above_base }
}

pub(super) fn sweep(
    line: &mut Line,
    cursor: Number,
    settings: &Settings,
    now: Millis,
    written: &mut Written,
) -> Sweep {
    let done = |abandoned| Sweep { abandoned, cursor: Number(0) };
    let Some(limit) = line.item.policy.unseen_limit_seconds() else {
        return done(0);
    };
    let stopped = line.is_stopped(settings, now) || line.item.held_until > now;
    if stopped || !line.absence_counts(limit, now) {
        return done(0);
    }
    let fresh_from = line.fresh_from(limit, now);
    let looked_at = line.waiting.from(cursor, CHUNK as usize);
    let end_of_line = looked_at.len() < CHUNK as usize;
    let mut abandoned = 0;
    let mut next = cursor;
    for (user, number) in looked_at {
        if number >= fresh_from {
            return done(abandoned);
        }
        next = number.next();
        if !line.seen(number, limit, now) {
            line.depart(&user);
            line.end(user, number, EndReason::Abandoned, now, written);
            abandoned += 1;
        }
    }
    if end_of_line { done(abandoned) } else { Sweep { abandoned, cursor: next } }
}
