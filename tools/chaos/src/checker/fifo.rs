//! First come, first served: numbers follow the order of joins, admissions follow the numbers.

use std::collections::HashMap;

use super::lines::Lines;
use super::membership::{Admitted, Membership};
use super::{Rule, Violations};
use crate::History;
use crate::history::{EventKind, Millis, Op};

/// When a user first requested a ticket, and when a join first returned this number.
#[derive(Debug, Clone, Copy)]
struct FirstJoin {
    number: u64,
    requested: Millis,
    returned: Millis,
}

pub(super) fn judge(history: &History, lines: &Lines<'_>, violations: &mut Violations) {
    admissions(&Membership::from_history(history, lines), lines, violations);
    for (item, first_joins) in first_joins(history) {
        numbers(item, first_joins, violations);
    }
}

/// No ticket is admitted after one with a higher number that was admitted while the ticket waited. Users that miss their
/// turn would be, so the lines of a run have no grace period.
fn admissions(membership: &Membership<'_>, lines: &Lines<'_>, violations: &mut Violations) {
    for (item, events) in &lines.events {
        let mut eras: Vec<Admitted<'_>> = Vec::new();
        for event in events.iter().filter(|event| event.event == EventKind::Activated) {
            let era = lines.losses.era_of(event);
            eras.resize_with(eras.len().max(era + 1), Admitted::default);
            let ticket = lines.ticket(item, event.number);
            let first_era = membership.first_era(item, event.number).unwrap_or(era);
            let overtaken = (first_era..=era).find_map(|past| {
                // An admission or end in an earlier era was judged there, and the store has lost it.
                let events = ticket.in_era(past);
                if past < era && (events.activated.is_some() || events.closed.is_some()) {
                    return None;
                }
                if past == first_era {
                    return eras[past].highest().filter(|highest| *highest > event.number);
                }
                eras[past].beyond(event.number, membership.reclaimed(item, event.number, past)?)
            });
            if let Some(other) = overtaken {
                let what = format!("{item} {}: admitted after {other}", event.number);
                violations.add(Rule::Fifo, event.at, what);
            }
            eras[era].add(event);
        }
    }
}

/// The first number of every user, by item.
fn first_joins(history: &History) -> HashMap<&str, Vec<FirstJoin>> {
    let mut requested: HashMap<(&str, &str), Millis> = HashMap::new();
    let mut joins: HashMap<(&str, &str), FirstJoin> = HashMap::new();
    for call in history.calls.iter().filter(|call| call.op == Op::Join) {
        let user = (call.item.as_str(), call.user.as_str());
        let requested = *requested.entry(user).or_insert(call.from);
        if let Some(number) = call.reply().and_then(|reply| reply.number) {
            let join = FirstJoin { number, requested, returned: call.to };
            let first = joins.entry(user).or_insert(join);
            first.returned = first.returned.min(call.to);
        }
    }
    let mut by_item: HashMap<&str, Vec<FirstJoin>> = HashMap::new();
    for ((item, _), join) in joins {
        by_item.entry(item).or_default().push(join);
    }
    by_item
}

/// A user whose join ended before the join of another user began has the lower number.
fn numbers(item: &str, mut first_joins: Vec<FirstJoin>, violations: &mut Violations) {
    first_joins.sort_by_key(|join| join.number);
    // The latest request among the lower numbers.
    let mut latest: Option<FirstJoin> = None;
    for join in first_joins {
        if let Some(earlier) = latest
            && join.returned < earlier.requested
        {
            let (number, behind) = (join.number, earlier.number);
            let what = format!("{item} {number}: was issued before {behind} was requested");
            violations.add(Rule::Fifo, join.returned, what);
        }
        if latest.is_none_or(|latest| join.requested > latest.requested) {
            latest = Some(join);
        }
    }
}
