//! First come, first served: numbers follow the order of coming, admissions follow the numbers.

use std::collections::HashMap;

use super::lines::Lines;
use super::presence::{Admitted, Presence};
use super::{Findings, Rule};
use crate::History;
use crate::history::{Kind, Millis, Op};

/// When a person first asked for a place, and when they first had this one.
#[derive(Debug, Clone, Copy)]
struct Coming {
    number: u64,
    asked: Millis,
    answered: Millis,
}

pub(super) fn judge(history: &History, lines: &Lines<'_>, found: &mut Findings) {
    admissions(&Presence::of(history, lines), lines, found);
    for (item, comings) in comings(history) {
        numbers(item, comings, found);
    }
}

/// Nobody is let in after somebody with a higher number who came in while they were in the line. Those
/// who miss their turn are, so lines that are judged have no grace period.
fn admissions(presence: &Presence<'_>, lines: &Lines<'_>, found: &mut Findings) {
    for (item, events) in &lines.events {
        let mut eras: Vec<Admitted<'_>> = Vec::new();
        for told in events.iter().filter(|told| told.event == Kind::Activated) {
            let era = lines.losses.era_of(told);
            eras.resize_with(eras.len().max(era + 1), Admitted::default);
            let ticket = lines.ticket(item, told.number);
            let born = presence.born(item, told.number).unwrap_or(era);
            let overtaken = (born..=era).find_map(|past| {
                // Where it was let in or ended before, that was judged then, and forgotten.
                let life = ticket.life(past);
                if past < era && (life.activated.is_some() || life.closed.is_some()) {
                    return None;
                }
                if past == born {
                    return eras[past].highest().filter(|highest| *highest > told.number);
                }
                eras[past].beyond(told.number, presence.back(item, told.number, past)?)
            });
            if let Some(other) = overtaken {
                let what = format!("{item} {}: let in after {other}", told.number);
                found.add(Rule::Fifo, told.at, what);
            }
            eras[era].add(told);
        }
    }
}

/// The first place of everybody, by item.
fn comings(history: &History) -> HashMap<&str, Vec<Coming>> {
    let mut asked: HashMap<(&str, &str), Millis> = HashMap::new();
    let mut places: HashMap<(&str, &str), Coming> = HashMap::new();
    for call in history.calls.iter().filter(|call| call.op == Op::Join) {
        let person = (call.item.as_str(), call.user.as_str());
        let asked = *asked.entry(person).or_insert(call.from);
        if let Some(number) = call.seen().and_then(|seen| seen.number) {
            let place = Coming { number, asked, answered: call.to };
            let first = places.entry(person).or_insert(place);
            first.answered = first.answered.min(call.to);
        }
    }
    let mut by_item: HashMap<&str, Vec<Coming>> = HashMap::new();
    for ((item, _), coming) in places {
        by_item.entry(item).or_default().push(coming);
    }
    by_item
}

/// Whoever had a place before somebody else even asked for one has the lower number.
fn numbers(item: &str, mut comings: Vec<Coming>, found: &mut Findings) {
    comings.sort_by_key(|coming| coming.number);
    // Who asked last of all with a lower number.
    let mut latest: Option<Coming> = None;
    for coming in comings {
        if let Some(earlier) = latest
            && coming.answered < earlier.asked
        {
            let (number, behind) = (coming.number, earlier.number);
            let what = format!("{item} {number}: had a place before {behind} asked for one");
            found.add(Rule::Fifo, coming.answered, what);
        }
        if latest.is_none_or(|latest| coming.asked > latest.asked) {
            latest = Some(coming);
        }
    }
}
