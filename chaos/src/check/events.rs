//! Whatever happens to a ticket is told, what is told fits together, and whatever was told to us
//! has taken effect.

use std::collections::HashMap;

use super::lines::{Lines, Missing, ends_by_time};
use super::losses::Losses;
use super::{Findings, Rule};
use crate::History;
use crate::history::{Call, Kind, Millis, Op, Told};

pub(super) fn judge(history: &History, lines: &Lines<'_>, found: &mut Findings) {
    let mut known: HashMap<(&str, u64), Millis> = HashMap::new();
    for call in &history.calls {
        let Some(number) = call.number() else { continue };
        let since = *known.entry((&call.item, number)).or_insert(call.from);
        let Some((event, missing)) = unheard_of(call, number, since, lines) else { continue };
        if !was_lost(call, event, number, lines) {
            let what = format!("{} {number} of {} {missing}", call.item, call.user);
            found.add(Rule::LostEvents, call.to, what);
        }
    }
    repeats(history, &lines.losses, found);
    deliveries(history, &lines.losses, found);
    lives(lines, found);
    endings(history, lines, found);
    catalogue(history, found);
}

/// What a person or an order service was answered, others were told; if not, what is missing.
fn unheard_of(
    call: &Call,
    number: u64,
    since: Millis,
    lines: &Lines<'_>,
) -> Option<(Kind, &'static str)> {
    let seen = call.seen()?;
    let ticket = lines.ticket(&call.item, number);
    let status = seen.status.as_deref().unwrap_or_default();
    // A place that was lost can be ended without being taken back.
    let ended_elsewhere = ticket.has_ended() && lines.losses.between(since, call.to);
    let was_inside =
        status == "ENTERABLE" || (matches!(status, "EXPIRED" | "COMPLETED") && !ended_elsewhere);
    let is_over = matches!(status, "EXPIRED" | "COMPLETED" | "LEFT" | "ABANDONED" | "REPLACED");
    if was_inside && !ticket.was_let_in() {
        Some((Kind::Activated, "was inside, but was never told of"))
    } else if ticket.has_ended() {
        None
    } else if is_over {
        Some((Kind::Closed, "has ended, but its end was never told"))
    } else if call.op == Op::Leave || seen.released == Some(true) {
        Some((Kind::Closed, "was given up, but its end was never told"))
    } else {
        (call.op == Op::Order).then_some((Kind::Closed, "was ordered with, but never ended"))
    }
}

/// Whether the store lost it before anybody could be told.
fn was_lost(call: &Call, event: Kind, number: u64, lines: &Lines<'_>) -> bool {
    if call.op == Op::Order {
        return lines.losses.took_order(call.to);
    }
    let status = call.seen().and_then(|seen| seen.status.as_deref());
    let by_time = event == Kind::Closed && ends_by_time(status);
    lines.took_along(Missing { event, item: &call.item, number, heard: call.to, by_time })
}

/// A repeat is the same, word for word, and an id names one event. What was lost and happened again is
/// told again, with the same id.
fn repeats(history: &History, losses: &Losses, found: &mut Findings) {
    let mut first: HashMap<(usize, &str), &Told> = HashMap::new();
    let mut ids: HashMap<(Kind, &str, u64), &str> = HashMap::new();
    for told in &history.told {
        let original = first.entry((losses.era_of(told), &told.id)).or_insert(told);
        let id = ids.entry((told.event, &told.item, told.number)).or_insert(&told.id);
        if !original.repeats(told) || *id != told.id {
            let what =
                format!("{} {}: {:?} is told in two ways", told.item, told.number, told.event);
            found.add(Rule::Contradictions, told.at, what);
        }
    }
}

/// In each topic, what is heard first is heard in the order in which it happened.
fn deliveries(history: &History, losses: &Losses, found: &mut Findings) {
    let mut latest: HashMap<(Kind, &str, usize), &str> = HashMap::new();
    let mut heard: std::collections::HashSet<&str> = std::collections::HashSet::new();
    for told in history.told.iter().filter(|told| heard.insert(&told.id)) {
        let era = losses.era_of(told);
        let latest = latest.entry((told.event, &told.item, era)).or_default();
        if told.sequence.as_str() < *latest {
            let what = format!("{} {}: {:?} came too late", told.item, told.number, told.event);
            found.add(Rule::Contradictions, told.at, what);
        }
        *latest = (*latest).max(&told.sequence);
    }
}

/// A ticket is let in and then ends, in its own time.
fn lives(lines: &Lines<'_>, found: &mut Findings) {
    let tickets = lines
        .tickets
        .iter()
        .flat_map(|(item, line)| line.iter().map(move |(number, ticket)| (item, number, ticket)));
    for (item, number, ticket) in tickets {
        for life in ticket.lives() {
            let Some(closed) = life.closed else { continue };
            let reason = closed.reason.as_deref().unwrap_or_default();
            // One that was let in before a loss may end after it, and others not have heard of it.
            let born = lines.losses.era(lines.births.earliest(item, *number));
            let shaken = born < lines.losses.era_of(closed);
            let wrong = match life.activated {
                None if matches!(reason, "EXPIRED" | "COMPLETED") && !shaken => "was never let in",
                Some(activated) if activated.sequence > closed.sequence => {
                    "was let in after its end"
                }
                Some(activated) if activated.user != closed.user => "is two people's",
                Some(activated) if reason == "EXPIRED" && Some(closed.at) < activated.expires => {
                    "expired too early"
                }
                _ => continue,
            };
            let what = format!("{item} {number}: ended as {reason}, but {wrong}");
            found.add(Rule::Contradictions, closed.at, what);
        }
    }
}

/// When all is over, as many are inside as were told of.
fn endings(history: &History, lines: &Lines<'_>, found: &mut Findings) {
    let at = history.setup.as_ref().map_or(0, |setup| setup.to);
    let era = lines.losses.last_era();
    for end in &history.finals {
        let of_item = lines.tickets.get(end.item.as_str()).into_iter().flat_map(HashMap::values);
        let lives = of_item.map(|ticket| ticket.life(era));
        let inside = lives.filter(|life| life.activated.is_some() && life.closed.is_none());
        let (inside, entered) = (inside.count() as u64, end.entered);
        if inside != entered {
            let what = format!("{}: {entered} are inside, {inside} were told of", end.item);
            found.add(Rule::LostEvents, at, what);
        }
        if end.waiting > 0 {
            let what = format!("{}: {} wait when all is over", end.item, end.waiting);
            found.add(Rule::LostPeople, at, what);
        }
    }
}

/// The last that the product service said is what holds.
fn catalogue(history: &History, found: &mut Findings) {
    for end in &history.finals {
        let of_item = history.announced.iter().rfind(|announced| announced.item == end.item);
        let Some(latest) = of_item else { continue };
        if (end.version, end.stock) != (Some(latest.version), latest.stock) {
            let (item, version, held) = (&end.item, latest.version, end.version);
            let what = format!("{item}: version {version} was published, {held:?} holds");
            found.add(Rule::LostEvents, latest.at, what);
        }
    }
}
