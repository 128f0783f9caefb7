//! Whatever happens to a ticket is told, what is told fits together, and whatever was told to us
//! has taken effect.

use std::collections::HashMap;

use super::lines::Lines;
use super::{Findings, Rule};
use crate::History;
use crate::history::{Call, Kind, Op, Told};

pub(super) fn judge(history: &History, lines: &Lines<'_>, found: &mut Findings) {
    history.calls.iter().for_each(|call| has_been_told(call, lines, found));
    repeats(history, found);
    deliveries(history, found);
    lives(lines, found);
    endings(history, lines, found);
    catalogue(history, found);
}

/// What a person or an order service was answered, others were told.
fn has_been_told(call: &Call, lines: &Lines<'_>, found: &mut Findings) {
    let (Some(number), Some(seen)) = (call.number(), call.seen()) else { return };
    let ticket = lines.ticket(&call.item, number);
    let status = seen.status.as_deref().unwrap_or_default();
    let was_inside = matches!(status, "ENTERABLE" | "EXPIRED" | "COMPLETED");
    let missing = if was_inside && ticket.activated.is_none() {
        "was inside, but was never told of"
    } else if matches!(status, "EXPIRED" | "COMPLETED" | "LEFT" | "ABANDONED" | "REPLACED")
        && ticket.closed.is_none()
    {
        "has ended, but its end was never told"
    } else if (call.op == Op::Leave || seen.released == Some(true)) && ticket.closed.is_none() {
        "was given up, but its end was never told"
    } else if call.op == Op::Order && ticket.closed.is_none() {
        "was ordered with, but never ended"
    } else {
        return;
    };
    let what = format!("{} {number} of {} {missing}", call.item, call.user);
    found.add(Rule::LostEvents, call.to, what);
}

/// A repeat is the same, word for word, and an id names one event.
fn repeats(history: &History, found: &mut Findings) {
    let mut first: HashMap<&str, &Told> = HashMap::new();
    let mut ids: HashMap<(Kind, &str, u64), &str> = HashMap::new();
    for told in &history.told {
        let original = first.entry(&told.id).or_insert(told);
        let id = ids.entry((told.event, &told.item, told.number)).or_insert(&told.id);
        if !original.repeats(told) || *id != told.id {
            let what =
                format!("{} {}: {:?} is told in two ways", told.item, told.number, told.event);
            found.add(Rule::Contradictions, told.at, what);
        }
    }
}

/// In each topic, what is heard first is heard in the order in which it happened.
fn deliveries(history: &History, found: &mut Findings) {
    let mut latest: HashMap<(Kind, &str), &str> = HashMap::new();
    let mut heard: std::collections::HashSet<&str> = std::collections::HashSet::new();
    for told in history.told.iter().filter(|told| heard.insert(&told.id)) {
        let latest = latest.entry((told.event, &told.item)).or_default();
        if told.sequence.as_str() < *latest {
            let what = format!("{} {}: {:?} came too late", told.item, told.number, told.event);
            found.add(Rule::Contradictions, told.at, what);
        }
        *latest = (*latest).max(&told.sequence);
    }
}

/// A ticket is let in and then ends, in its own time.
fn lives(lines: &Lines<'_>, found: &mut Findings) {
    for ((item, number), ticket) in &lines.tickets {
        let Some(closed) = ticket.closed else { continue };
        let reason = closed.reason.as_deref().unwrap_or_default();
        let wrong = match ticket.activated {
            None if matches!(reason, "EXPIRED" | "COMPLETED") => "was never let in",
            Some(activated) if activated.sequence > closed.sequence => "was let in after its end",
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

/// When all is over, as many are inside as were told of.
fn endings(history: &History, lines: &Lines<'_>, found: &mut Findings) {
    let at = history.setup.as_ref().map_or(0, |setup| setup.to);
    for end in &history.finals {
        let of_item = lines.tickets.iter().filter(|((item, _), _)| *item == end.item);
        let inside = of_item.filter(|(_, one)| one.activated.is_some() && one.closed.is_none());
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
