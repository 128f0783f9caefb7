//! One place per person, one person per place.

use std::collections::{BTreeMap, HashMap};

use super::lines::Lines;
use super::{Findings, Rule};
use crate::History;
use crate::history::{Kind, Millis};

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
    let mut numbers: HashMap<(&str, &str), BTreeMap<u64, Millis>> = HashMap::new();
    for call in &history.calls {
        if let Some(number) = call.seen().and_then(|seen| seen.number) {
            let person = (call.item.as_str(), call.user.as_str());
            numbers.entry(person).or_default().entry(number).or_insert(call.to);
        }
    }
    for ((item, user), numbers) in numbers {
        let pairs = numbers.iter().zip(numbers.iter().skip(1));
        for ((first, since), (second, at)) in pairs {
            // Whoever joins again without the token after a loss is a newcomer.
            let forgotten = lines.losses.between(*since, *at);
            if !forgotten && !lines.ticket(item, *first).has_ended() {
                let what = format!("{item}: {user} has {first}, which never ended, and {second}");
                found.add(Rule::Places, *at, what);
            }
        }
    }
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
