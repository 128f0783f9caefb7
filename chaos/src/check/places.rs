//! One place per person, one person per place.

use std::collections::{BTreeMap, HashMap};

use super::lines::{Lines, Missing};
use super::{Findings, Rule};
use crate::History;
use crate::history::{Call, Kind, Millis};

pub(super) fn judge(history: &History, lines: &Lines<'_>, found: &mut Findings) {
    owners(history, found);
    successions(history, lines, found);
    entries(lines, found);
}

/// A number belongs to whoever had it first.
fn owners(history: &History, found: &mut Findings) {
    let mut owners: HashMap<(&str, u64), &str> = HashMap::new();
    let answers = history.calls.iter().filter_map(|call| {
        let number = call.seen()?.number?;
        Some((call.item.as_str(), number, call.user.as_str(), call.to))
    });
    let events = history.told.iter();
    let events = events.map(|told| (told.item.as_str(), told.number, told.user.as_str(), told.at));
    for (item, number, user, at) in answers.chain(events) {
        let owner = owners.entry((item, number)).or_insert(user);
        if *owner != user {
            let what = format!("{item} {number}: belongs to {owner} and to {user}");
            found.add(Rule::Places, at, what);
        }
    }
}

/// A person who has another number than before has lost the earlier one first, and that was told.
fn successions(history: &History, lines: &Lines<'_>, found: &mut Findings) {
    let mut numbers: HashMap<(&str, &str), BTreeMap<u64, Vec<&Call>>> = HashMap::new();
    for call in &history.calls {
        if let Some(number) = call.seen().and_then(|seen| seen.number) {
            let person = (call.item.as_str(), call.user.as_str());
            numbers.entry(person).or_default().entry(number).or_default().push(call);
        }
    }
    for ((item, user), numbers) in numbers {
        for ((first, earlier), (second, later)) in numbers.iter().zip(numbers.iter().skip(1)) {
            let (since, at) = (first_answer(earlier), first_answer(later));
            let wrong = if lines.losses.between(since, at) {
                shown_again(earlier, at, lines).map(|shown| (*second, shown, *first))
            } else {
                Some((*first, at, *second))
            };
            if let Some((over, at, other)) = wrong
                && !was_over(item, over, at, lines)
            {
                let what = format!("{item}: {user} has {over}, which had not ended, and {other}");
                found.add(Rule::Places, at, what);
            }
        }
    }
}

fn first_answer(calls: &[&Call]) -> Millis {
    calls.iter().map(|call| call.to).min().unwrap_or_default()
}

/// Whoever joins again without the token after a loss is a newcomer; when they show it, and have their
/// place of old again, the new one is over. Says when that was.
fn shown_again(earlier: &[&Call], newcomer: Millis, lines: &Lines<'_>) -> Option<Millis> {
    let again = earlier.iter().filter(|call| {
        let losses = &lines.losses;
        let counts = call.from > newcomer && losses.is_fresh(call.from);
        counts && call.says("WAITING") && !losses.between(newcomer, call.to)
    });
    again.map(|call| call.to).min()
}

/// Whether a number had ended when its holder was told of another one, as far as others can know.
fn was_over(item: &str, number: u64, at: Millis, lines: &Lines<'_>) -> bool {
    let ticket = lines.ticket(item, number);
    let missing = Missing { event: Kind::Closed, item, number, heard: at, by_time: false };
    ticket.had_ended(at) || (!ticket.has_ended() && lines.took_along(missing))
}

/// Nobody is inside twice.
fn entries(lines: &Lines<'_>, found: &mut Findings) {
    for (item, events) in lines.eras() {
        let mut inside: HashMap<&str, u64> = HashMap::new();
        for told in events {
            match told.event {
                Kind::Activated => {
                    if let Some(other) = inside.insert(&told.user, told.number) {
                        let (user, number) = (&told.user, told.number);
                        let what = format!("{item}: {user} is inside with {other} and {number}");
                        found.add(Rule::Places, told.at, what);
                    }
                }
                Kind::Closed if inside.get(told.user.as_str()) == Some(&told.number) => {
                    inside.remove(told.user.as_str());
                }
                Kind::Closed => {}
            }
        }
    }
}
