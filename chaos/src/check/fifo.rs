//! First come, first served: numbers follow the order of coming, admissions follow the numbers.

use std::collections::HashMap;

use super::lines::Lines;
use super::{Findings, Rule};
use crate::History;
use crate::history::{Millis, Op};

/// When a person first asked for a place, and when they first had this one.
#[derive(Debug, Clone, Copy)]
struct Coming {
    number: u64,
    asked: Millis,
    answered: Millis,
}

pub(super) fn judge(history: &History, lines: &Lines<'_>, found: &mut Findings) {
    admissions(lines, found);
    for (item, comings) in comings(history) {
        numbers(item, comings, found);
    }
}

/// Nobody is let in after somebody with a higher number. Those who miss their turn are, so lines
/// that are judged have no grace period.
fn admissions(lines: &Lines<'_>, found: &mut Findings) {
    let mut highest: HashMap<&str, u64> = HashMap::new();
    for told in lines.activated() {
        let highest = highest.entry(&told.item).or_default();
        if told.number < *highest {
            let what = format!("{} {}: let in after {highest}", told.item, told.number);
            found.add(Rule::Fifo, told.at, what);
        }
        *highest = told.number.max(*highest);
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
