//! First come, first served: numbers follow the order of joins, and admissions follow the numbers, or in a drawn cohort
//! the ranks. Each lane is a line of its own.

use std::collections::{BTreeMap, HashMap};

use super::lines::Lines;
use super::membership::{Admitted, Membership};
use super::serving_order::ServingOrder;
use super::{Rule, Violations};
use crate::History;
use crate::history::{EventKind, Millis, ObservedEvent, Op, TicketNumber};

/// When a user first requested a ticket, and when a join first returned this number.
#[derive(Debug, Clone, Copy)]
struct FirstJoin {
    number: TicketNumber,
    requested: Millis,
    returned: Millis,
}

pub(super) fn judge(
    history: &History,
    lines: &Lines<'_>,
    order: &ServingOrder<'_>,
    violations: &mut Violations,
) {
    let membership = Membership::from_history(history, lines);
    for (item, events) in &lines.events {
        let mut lanes: BTreeMap<u8, Vec<&ObservedEvent>> = BTreeMap::new();
        for event in events.iter().filter(|event| event.event == EventKind::Activated) {
            lanes.entry(event.number.lane).or_default().push(event);
        }
        for events in lanes.values() {
            admissions(item, events, (&membership, lines, order), violations);
        }
    }
    for ((item, _), first_joins) in first_joins(history) {
        numbers(item, first_joins, violations);
    }
}

/// No ticket is admitted after one of a higher rank that was admitted while the ticket waited. Users that miss their
/// turn would be, so the lines of a run have no grace period.
fn admissions(
    item: &str,
    events: &[&ObservedEvent],
    (membership, lines, order): (&Membership<'_>, &Lines<'_>, &ServingOrder<'_>),
    violations: &mut Violations,
) {
    let mut eras: Vec<Admitted<'_>> = Vec::new();
    for event in events {
        let (era, number) = (lines.losses.era_of(event), event.number);
        let rank = |era| order.rank(item, number, era);
        eras.resize_with(eras.len().max(era + 1), Admitted::default);
        let ticket = lines.ticket(item, number);
        let first_era = membership.first_era(item, number).unwrap_or(era);
        let overtaken = (first_era..=era).find_map(|past| {
            // An admission or end in an earlier era was judged there, and the store has lost it.
            let events = ticket.in_era(past);
            if past < era && (events.activated.is_some() || events.closed.is_some()) {
                return None;
            }
            if past == first_era {
                return eras[past].above(rank(past));
            }
            eras[past].above_since(rank(past), membership.reclaimed(item, number, past)?)
        });
        if let Some(other) = overtaken {
            let what = match order.cohort_rank(item, number, era) {
                Some(place) => format!("{item} {number}: drawn as {place}, admitted after {other}"),
                None => format!("{item} {number}: admitted after {other}"),
            };
            violations.add(Rule::Fifo, event.at, what);
        }
        eras[era].add(rank(era), event);
    }
}

/// The first number of every user, by item and lane.
fn first_joins(history: &History) -> HashMap<(&str, u8), Vec<FirstJoin>> {
    // A user may join with and without a code, which are requests for different lanes.
    let mut requested: HashMap<(&str, &str, Option<&str>), Millis> = HashMap::new();
    let mut joins: HashMap<(&str, u8, &str), FirstJoin> = HashMap::new();
    for call in history.calls.iter().filter(|call| call.op == Op::Join) {
        let (item, user) = (call.item.as_str(), call.user.as_str());
        let request = (item, user, call.code.as_deref());
        let requested = *requested.entry(request).or_insert(call.from);
        if let Some(number) = call.reply().and_then(|reply| reply.number) {
            let join = FirstJoin { number, requested, returned: call.to };
            let first = joins.entry((item, number.lane, user)).or_insert(join);
            first.returned = first.returned.min(call.to);
        }
    }
    let mut by_lane: HashMap<(&str, u8), Vec<FirstJoin>> = HashMap::new();
    for ((item, lane, _), join) in joins {
        by_lane.entry((item, lane)).or_default().push(join);
    }
    by_lane
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
