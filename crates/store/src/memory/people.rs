use std::collections::HashMap;

use daegi_domain::{
    EndReason, Guard, Millis, Mode, Number, OnRejoin, Settings, UserId, line_rules,
};

use super::line::{Line, Missed};
use super::outbox::Written;
use super::recovery::{self, Store};
use crate::LEAVE_WINDOW_MS;
use crate::model::{Closing, Joined, Place, Refusal, Standing};

pub(super) fn join(
    line: &mut Line,
    users: &[UserId],
    settings: &Settings,
    most_waiting: u64,
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Vec<Joined> {
    if refusal(line).is_none() {
        line.notice_loss(store, now);
    }
    let mut answered: HashMap<&UserId, Joined> = HashMap::new();
    let mut answers = Vec::with_capacity(users.len());
    for user in users {
        let answer = match answered.get(user) {
            Some(answer) => repeated(answer),
            None => join_one(line, user, settings, most_waiting, store, now, written),
        };
        answered.insert(user, answer.clone());
        answers.push(answer);
    }
    let issued = answers.iter().find_map(|answer| match answer {
        Joined::At { number, new: true, .. } => Some(*number),
        _ => None,
    });
    if let Some(first) = issued {
        line.born(first, now);
    }
    answers
}

/// A person who is in one batch twice gets one place and hears of it twice.
fn repeated(answer: &Joined) -> Joined {
    match answer {
        Joined::At { number, place, .. } => {
            Joined::At { number: *number, new: false, place: *place }
        }
        refused @ Joined::Refused(_) => refused.clone(),
    }
}

fn join_one(
    line: &mut Line,
    user: &UserId,
    settings: &Settings,
    most_waiting: u64,
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Joined {
    let refusal = refusal(line);
    let wait_ms = must_wait(line, user, store, now);
    let may_requeue = refusal.is_none() && wait_ms == 0 && line.in_line() <= most_waiting;
    let open = refusal.is_none();
    if let Some(place) = existing(line, user, open, may_requeue, store, now, written) {
        return place;
    }
    if let Some(refusal) = refusal {
        return Joined::Refused(refusal);
    }
    if wait_ms > 0 {
        return Joined::Refused(Refusal::LeftTooOften { wait_ms });
    }
    let passes = passes_through(line, settings, now);
    if !passes && line.in_line() >= most_waiting {
        return Joined::Refused(Refusal::LineFull);
    }
    line.follow_clock(now);
    line.tail = line.tail.next();
    line.totals.joined += 1;
    let number = line.tail;
    if passes {
        line.through += 1;
        line.moved(1, now);
        line.enter(user.clone(), number, now, written);
    } else {
        line.waiting.add(user.clone(), number);
    }
    let place = place_of(line, user, number);
    Joined::At { number, new: true, place }
}

/// How long a user must wait who left this line too often; 0 if they may join.
fn must_wait(line: &Line, user: &UserId, store: Store, now: Millis) -> Millis {
    let cost = store.leave_limit.cost_ms();
    match line.leaves.get(user).filter(|_| cost > 0) {
        Some(counted_until) => counted_until.saturating_sub(now + LEAVE_WINDOW_MS - cost),
        None => 0,
    }
}

/// Counts a leave against the limit of one user.
fn count_leave(line: &mut Line, user: &UserId, store: Store, now: Millis) {
    let cost = store.leave_limit.cost_ms();
    if cost == 0 {
        return;
    }
    let counted = line.leaves.get(user).unwrap_or(0);
    line.leaves.remove(counted, user);
    let counts_until = counted.max(now) + cost;
    line.leaves.insert(counts_until, user.clone(), counts_until);
    line.leaves.due(now, 10);
}

fn refusal(line: &Line) -> Option<Refusal> {
    if line.removed {
        Some(Refusal::NotFound)
    } else if !line.item.enabled {
        Some(Refusal::Disabled)
    } else if line.item.stock == 0 {
        Some(Refusal::SoldOut)
    } else {
        None
    }
}

/// The place a person holds already. Where they could take a new one (`open`), a place that is
/// over is ended here and now, and a place in the line may be given up for a new one (`may_requeue`).
fn existing(
    line: &mut Line,
    user: &UserId,
    open: bool,
    may_requeue: bool,
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Option<Joined> {
    if let Some(entry) = line.entered.get(user) {
        if entry.expires_at > now {
            return Some(at(entry.number, place_of(line, user, entry.number)));
        }
        if open {
            line.entered.remove(user);
            line.end(user.clone(), entry.number, EndReason::Expired, now, written);
        }
        return None;
    }
    let number = still_in_line(line, user, open, now, written)?;
    if may_requeue && line.item.policy.on_rejoin == OnRejoin::Requeue {
        count_leave(line, user, store, now);
        line.depart(user);
        line.returning.remove(user);
        line.end(user.clone(), number, EndReason::Replaced, now, written);
        return None;
    }
    Some(at(number, place_of(line, user, number)))
}

/// The number of a person in the line; one who missed their turn and is in time comes back.
fn still_in_line(
    line: &mut Line,
    user: &UserId,
    open: bool,
    now: Millis,
    written: &mut Written,
) -> Option<Number> {
    if let Some(number) = line.waiting.number_of(user).or(line.returning.number_of(user)) {
        return Some(number);
    }
    let missed = line.missed.get(user)?;
    if !line.is_missed_over(missed, now) {
        come_back(line, user, missed, now);
        return Some(missed.number);
    }
    if open {
        line.missed.remove(missed.until, user);
        line.end(user.clone(), missed.number, EndReason::Abandoned, now, written);
    }
    None
}

fn come_back(line: &mut Line, user: &UserId, missed: Missed, now: Millis) {
    line.missed.remove(missed.until, user);
    line.returning.add(user.clone(), missed.number);
    line.mark(missed.number, now);
}

fn at(number: Number, place: Place) -> Joined {
    Joined::At { number, new: false, place }
}

/// The queue starts by itself as soon as anybody waits, the rate is used up or there is no room.
fn passes_through(line: &Line, settings: &Settings, now: Millis) -> bool {
    line.item.policy.mode == Mode::Auto
        && !line.item.paused
        && line.item.recovering_until.max(line.item.behind_until) <= now
        && line.item.held_until <= now
        && line.waiting.len() + line.returning.len() == 0
        && line.through < line_rules::quota(&line.item, settings)
        && line.room(now) > 0
}

/// Where a living ticket stands.
pub(super) fn place_of(line: &Line, user: &UserId, number: Number) -> Place {
    if let Some(entry) = line.entered.get(user) {
        Place::Entered { at: entry.at, expires_at: entry.expires_at }
    } else if line.returning.number_of(user).is_some() {
        Place::Waiting { position: line.returning.rank(number) + 1 }
    } else {
        Place::Waiting { position: line.position(number) }
    }
}

pub(super) fn resolve(
    line: &mut Line,
    (user, number): &(UserId, Number),
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Standing {
    if let Some(entry) = line.entered.get(user).filter(|entry| entry.number == *number) {
        return match entry.expires_at > now {
            true => Standing::At(place_of(line, user, *number)),
            false => Standing::Ended(EndReason::Expired),
        };
    }
    if line.removed {
        return Standing::NotFound;
    }
    if *number < line.valid_from {
        return Standing::Restarted;
    }
    if let Some(missed) = line.missed.get(user).filter(|missed| missed.number == *number) {
        if line.is_missed_over(missed, now) {
            return Standing::Ended(EndReason::Abandoned);
        }
        come_back(line, user, missed, now);
    }
    let holds = |held: Option<Number>| held == Some(*number);
    if holds(line.waiting.number_of(user)) || holds(line.returning.number_of(user)) {
        return Standing::At(place_of(line, user, *number));
    }
    match line.ended(*number) {
        Some(reason) => Standing::Ended(reason),
        None => recovery::unknown(line, user, *number, store, now, written),
    }
}

pub(super) fn leave(
    line: &mut Line,
    user: &UserId,
    number: Number,
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Closing {
    let left = leave_any(line, user, number, store, now, written);
    if left.is_done() {
        count_leave(line, user, store, now);
    }
    left
}

fn leave_any(
    line: &mut Line,
    user: &UserId,
    number: Number,
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Closing {
    let entry = line.entered.get(user).filter(|entry| entry.number == number);
    if end_entry(line, user, number, EndReason::Left, store, now, written).is_done() {
        // A guard that is offline takes the pass until it expires.
        if let Some(entry) = entry.filter(|_| line.item.policy.guard == Guard::Offline) {
            line.leftover.insert(number, entry.expires_at);
        }
        return Closing::Done;
    }
    let missed = line.missed.get(user).filter(|missed| missed.number == number);
    if line.waiting.number_of(user) == Some(number) {
        line.depart(user);
    } else if line.returning.number_of(user) == Some(number) {
        line.returning.remove(user);
    } else if let Some(missed) = missed {
        let is_over = line.is_missed_over(missed, now);
        line.missed.remove(missed.until, user);
        if is_over {
            line.end(user.clone(), number, EndReason::Abandoned, now, written);
            return Closing::Over;
        }
    } else {
        return Closing::Over;
    }
    line.end_left(user.clone(), number, now, written);
    Closing::Done
}

pub(super) fn complete(
    line: &mut Line,
    user: &UserId,
    number: Number,
    reason: EndReason,
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Closing {
    let closing = end_entry(line, user, number, reason, store, now, written);
    if !closing.is_done() {
        // The order was closed after the user had given the entry back.
        line.leftover.remove(&number);
    }
    closing
}

fn end_entry(
    line: &mut Line,
    user: &UserId,
    number: Number,
    reason: EndReason,
    store: Store,
    now: Millis,
    written: &mut Written,
) -> Closing {
    let Some(entry) = line.entered.get(user).filter(|entry| entry.number == number) else {
        return recovery::end_lost(line, user, number, reason, store, now, written);
    };
    // What is over is over, also before the leader has noticed: the person was told so.
    let in_time = entry.expires_at > now;
    line.entered.remove(user);
    let reason = if in_time { reason } else { EndReason::Expired };
    line.end(user.clone(), number, reason, now, written);
    if in_time { Closing::Done } else { Closing::Over }
}
