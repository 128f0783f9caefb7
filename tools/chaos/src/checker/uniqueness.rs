//! A user has at most one live ticket per line, and a number belongs to one user.

use std::collections::{BTreeMap, HashMap};

use super::lines::{Lines, Missing};
use super::{Rule, Violations};
use crate::History;
use crate::history::{Call, EventKind, Millis, TicketNumber};

pub(super) fn judge(history: &History, lines: &Lines<'_>, violations: &mut Violations) {
    owners(history, violations);
    successions(history, lines, violations);
    entries(lines, violations);
}

/// A number belongs to one user.
fn owners(history: &History, violations: &mut Violations) {
    let mut owners: HashMap<(&str, TicketNumber), &str> = HashMap::new();
    let replies = history.calls.iter().filter_map(|call| {
        let number = call.reply()?.number?;
        Some((call.item.as_str(), number, call.user.as_str(), call.to))
    });
    let events = history.events.iter();
    let events =
        events.map(|event| (event.item.as_str(), event.number, event.user.as_str(), event.at));
    for (item, number, user, at) in replies.chain(events) {
        let owner = owners.entry((item, number)).or_insert(user);
        if *owner != user {
            let what = format!("{item} {number}: belongs to {owner} and to {user}");
            violations.add(Rule::UniqueTickets, at, what);
        }
    }
}

/// Before a user gets another number, the earlier ticket has ended, and the end was published.
fn successions(history: &History, lines: &Lines<'_>, violations: &mut Violations) {
    let mut numbers: HashMap<(&str, &str), BTreeMap<TicketNumber, Vec<&Call>>> = HashMap::new();
    for call in &history.calls {
        if let Some(number) = call.reply().and_then(|reply| reply.number) {
            let user = (call.item.as_str(), call.user.as_str());
            numbers.entry(user).or_default().entry(number).or_default().push(call);
        }
    }
    for ((item, user), numbers) in numbers {
        // Numbers of two lanes are not in order of time.
        let mut numbers: Vec<_> = numbers.iter().collect();
        numbers.sort_by_key(|(_, calls)| first_reply(calls));
        for ((first, earlier), (second, later)) in numbers.iter().zip(numbers.iter().skip(1)) {
            let (since, at) = (first_reply(earlier), first_reply(later));
            let pair = if lines.losses.between(since, at) {
                reclaimed_at(earlier, at, lines).map(|at| (**second, at, **first))
            } else {
                Some((**first, at, **second))
            };
            if let Some((ended, at, other)) = pair
                && !had_ended(item, ended, at, lines)
            {
                let what = format!("{item}: {user} has {ended}, which had not ended, and {other}");
                violations.add(Rule::UniqueTickets, at, what);
            }
        }
    }
}

fn first_reply(calls: &[&Call]) -> Millis {
    calls.iter().map(|call| call.to).min().unwrap_or_default()
}

/// When the user polled with the old token after a data loss and a new join: the old number is reclaimed and the new one ends.
fn reclaimed_at(earlier: &[&Call], rejoined: Millis, lines: &Lines<'_>) -> Option<Millis> {
    let reclaims = earlier.iter().filter(|call| {
        let losses = &lines.losses;
        let counts = call.from > rejoined && losses.is_fresh(call.from);
        counts && call.says("WAITING") && !losses.between(rejoined, call.to)
    });
    reclaims.map(|call| call.to).min()
}

/// Whether a number had ended, as far as events show, when its user received another one.
fn had_ended(item: &str, number: TicketNumber, at: Millis, lines: &Lines<'_>) -> bool {
    let ticket = lines.ticket(item, number);
    let missing =
        Missing { event: EventKind::Closed, item, number, observed_at: at, by_time: false };
    ticket.had_ended(at) || (!ticket.has_ended() && lines.may_have_lost(missing))
}

/// A user has at most one entry per line.
fn entries(lines: &Lines<'_>, violations: &mut Violations) {
    for (item, events) in lines.eras() {
        let mut entries_by_user: HashMap<&str, TicketNumber> = HashMap::new();
        for event in events {
            match event.event {
                EventKind::Activated => {
                    if let Some(other) = entries_by_user.insert(&event.user, event.number) {
                        let (user, number) = (&event.user, event.number);
                        let what = format!("{item}: {user} has two entries, {other} and {number}");
                        violations.add(Rule::UniqueTickets, event.at, what);
                    }
                }
                EventKind::Closed
                    if entries_by_user.get(event.user.as_str()) == Some(&event.number) =>
                {
                    entries_by_user.remove(event.user.as_str());
                }
                EventKind::Closed => {}
            }
        }
    }
}
