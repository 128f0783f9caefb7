//! Every state change of a ticket is published, events do not contradict each other, and every event that daegi received has
//! taken effect.

use std::collections::HashMap;

use super::data_loss::DataLosses;
use super::lines::{Lines, Missing, ends_by_time};
use super::{Rule, Violations};
use crate::History;
use crate::history::{Call, EventKind, Millis, ObservedEvent, Op, TicketNumber};

pub(super) fn judge(history: &History, lines: &Lines<'_>, violations: &mut Violations) {
    let mut known: HashMap<(&str, TicketNumber), Millis> = HashMap::new();
    for call in &history.calls {
        let Some(number) = call.number() else { continue };
        let since = *known.entry((&call.item, number)).or_insert(call.from);
        let Some((event, missing)) = missing_event(call, number, since, lines) else { continue };
        if !was_lost(call, event, number, lines) {
            let what = format!("{} {number} of {} {missing}", call.item, call.user);
            violations.add(Rule::LostEvents, call.to, what);
        }
    }
    repeats(history, &lines.losses, violations);
    deliveries(history, &lines.losses, violations);
    check_ticket_order(lines, violations);
    endings(history, lines, violations);
    check_items(history, violations);
}

/// The event that a reply implies, if it was not published.
fn missing_event(
    call: &Call,
    number: TicketNumber,
    since: Millis,
    lines: &Lines<'_>,
) -> Option<(EventKind, &'static str)> {
    let reply = call.reply()?;
    let ticket = lines.ticket(&call.item, number);
    let status = reply.status.as_deref().unwrap_or_default();
    // A lost ticket can end without being reclaimed.
    let ended_elsewhere = ticket.has_ended() && lines.losses.between(since, call.to);
    let was_entered =
        status == "ENTERABLE" || (matches!(status, "EXPIRED" | "COMPLETED") && !ended_elsewhere);
    let is_over = matches!(status, "EXPIRED" | "COMPLETED" | "LEFT" | "ABANDONED" | "REPLACED");
    if was_entered && !ticket.was_admitted() {
        Some((EventKind::Activated, "was entered, but the admission was not published"))
    } else if ticket.has_ended() {
        None
    } else if is_over {
        Some((EventKind::Closed, "has ended, but its end was not published"))
    } else if call.op == Op::Leave || reply.released == Some(true) {
        Some((EventKind::Closed, "was left or completed, but its end was not published"))
    } else {
        (call.op == Op::Order)
            .then_some((EventKind::Closed, "was ordered with, but its end was not published"))
    }
}

/// Whether the store may have lost the event before it was published.
fn was_lost(call: &Call, event: EventKind, number: TicketNumber, lines: &Lines<'_>) -> bool {
    if call.op == Op::Order {
        return lines.losses.may_lose_order(call.to);
    }
    let status = call.reply().and_then(|reply| reply.status.as_deref());
    let by_time = event == EventKind::Closed && ends_by_time(status);
    lines.may_have_lost(Missing { event, item: &call.item, number, observed_at: call.to, by_time })
}

/// A repeat equals the original, and an id names one event. A state change that was lost and happened again is published again
/// with the same id.
fn repeats(history: &History, losses: &DataLosses, violations: &mut Violations) {
    let mut first: HashMap<(usize, &str), &ObservedEvent> = HashMap::new();
    let mut ids: HashMap<(EventKind, &str, TicketNumber), &str> = HashMap::new();
    for event in &history.events {
        let original = first.entry((losses.era_of(event), &event.id)).or_insert(event);
        let id = ids.entry((event.event, &event.item, event.number)).or_insert(&event.id);
        if !original.repeats(event) || *id != event.id {
            let what = format!(
                "{} {}: {:?} was published with different contents",
                event.item, event.number, event.event
            );
            violations.add(Rule::Contradictions, event.at, what);
        }
    }
}

/// In each topic the first deliveries are in commit order.
fn deliveries(history: &History, losses: &DataLosses, violations: &mut Violations) {
    let mut latest: HashMap<(EventKind, &str, usize), &str> = HashMap::new();
    let mut received: std::collections::HashSet<&str> = std::collections::HashSet::new();
    for event in history.events.iter().filter(|event| received.insert(&event.id)) {
        let era = losses.era_of(event);
        let latest = latest.entry((event.event, &event.item, era)).or_default();
        if event.sequence.as_str() < *latest {
            let what = format!(
                "{} {}: {:?} was delivered out of order",
                event.item, event.number, event.event
            );
            violations.add(Rule::Contradictions, event.at, what);
        }
        *latest = (*latest).max(&event.sequence);
    }
}

/// A ticket is admitted and then ends, and an entry does not expire early.
fn check_ticket_order(lines: &Lines<'_>, violations: &mut Violations) {
    let tickets = lines
        .tickets
        .iter()
        .flat_map(|(item, line)| line.iter().map(move |(number, ticket)| (item, number, ticket)));
    for (item, number, ticket) in tickets {
        for events in ticket.eras_of_ticket() {
            let Some(closed) = events.closed else { continue };
            let reason = closed.reason.as_deref().unwrap_or_default();
            // A ticket that was admitted before a data loss may end after it, and its admission may be lost.
            let born = lines.losses.era(lines.first_requests.earliest(item, *number));
            let crossed_loss = born < lines.losses.era_of(closed);
            let problem = match events.activated {
                None if matches!(reason, "EXPIRED" | "COMPLETED") && !crossed_loss => {
                    "was never admitted"
                }
                Some(activated) if activated.sequence > closed.sequence => {
                    "was admitted after its end"
                }
                Some(activated) if activated.user != closed.user => "belongs to two users",
                Some(activated) if reason == "EXPIRED" && Some(closed.at) < activated.expires => {
                    "expired too early"
                }
                _ => continue,
            };
            let what = format!("{item} {number}: ended as {reason}, but {problem}");
            violations.add(Rule::Contradictions, closed.at, what);
        }
    }
}

/// At the end, the number of entries equals the published admissions without an end.
fn endings(history: &History, lines: &Lines<'_>, violations: &mut Violations) {
    let at = history.setup.as_ref().map_or(0, |setup| setup.to);
    let era = lines.losses.last_era();
    for end in &history.finals {
        let of_item = lines.tickets.get(end.item.as_str()).into_iter().flat_map(HashMap::values);
        let lives = of_item.map(|ticket| ticket.in_era(era));
        let entries = lives.filter(|events| events.activated.is_some() && events.closed.is_none());
        let (entries, entered) = (entries.count() as u64, end.entered);
        if entries != entered {
            let what = format!("{}: {entered} entries, {entries} by events", end.item);
            violations.add(Rule::LostEvents, at, what);
        }
        if end.waiting > 0 {
            let what = format!("{}: {} users still wait at the end", end.item, end.waiting);
            violations.add(Rule::LostTickets, at, what);
        }
    }
}

/// The newest published version of each item is stored.
fn check_items(history: &History, violations: &mut Violations) {
    for end in &history.finals {
        let of_item = history.published.iter().rfind(|version| version.item == end.item);
        let Some(latest) = of_item else { continue };
        if (end.version, end.stock) != (Some(latest.version), latest.stock) {
            let (item, version, held) = (&end.item, latest.version, end.version);
            let what = format!("{item}: version {version} was published, {held:?} is stored");
            violations.add(Rule::LostEvents, latest.at, what);
        }
    }
}
