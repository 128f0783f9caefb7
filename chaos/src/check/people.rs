//! Nobody loses their place: whoever waits is let in, and is told what is true.

use std::collections::HashMap;

use super::lines::{Lines, Missing, ends_by_time};
use super::losses::Losses;
use super::{Findings, Rule};
use crate::History;
use crate::history::{Call, Kind, Millis, Op, Outcome, Setup};

/// What a person knows about a number.
#[derive(Debug, Default)]
struct Story<'a> {
    user: &'a str,
    /// When they first heard of the number.
    first: Option<Millis>,
    /// When they first heard that they may enter.
    enterable: Option<Millis>,
    /// When and how they first heard of the end.
    ended: Option<(Millis, &'a str)>,
    /// When they last heard anything.
    last: Millis,
    /// Whether they asked to be taken out.
    leaves: bool,
    /// Whether they have had a lower number, or have had a higher one since.
    has_older: bool,
    has_newer: bool,
}

pub(super) fn judge(setup: &Setup, history: &History, lines: &Lines<'_>, found: &mut Findings) {
    let mut stories: HashMap<(&str, u64), Story<'_>> = HashMap::new();
    let mut numbers: HashMap<(&str, &str), (u64, u64)> = HashMap::new();
    for call in &history.calls {
        let Some(number) = call.number() else { continue };
        let (lowest, highest) = numbers.entry((&call.item, &call.user)).or_insert((number, number));
        (*lowest, *highest) = (number.min(*lowest), number.max(*highest));
        let story = stories.entry((&call.item, number)).or_default();
        story.user = &call.user;
        story.first.get_or_insert(call.to);
        story.last = story.last.max(call.to);
        story.leaves |= call.op == Op::Leave;
        refused(call, number, found);
        if !hear(story, call, setup.old_news, &lines.losses) {
            let what = format!("{} {number} of {}: waits again", call.item, call.user);
            found.add(Rule::LostPeople, call.to, what);
        }
    }
    for ((item, number), mut story) in stories {
        let (lowest, highest) = numbers.get(&(item, story.user)).copied().unwrap_or_default();
        (story.has_older, story.has_newer) = (lowest < number, highest > number);
        let name = format!("{item} {number} of {}", story.user);
        for what in ends(&story, item, number, lines) {
            found.add(Rule::LostPeople, story.last, format!("{name}: {what}"));
        }
    }
}

/// A ticket that was given is a ticket.
fn refused(call: &Call, number: u64, found: &mut Findings) {
    let (Op::Poll | Op::Leave, Outcome::Refused { status, code }) = (call.op, &call.outcome) else {
        return;
    };
    if matches!(status, 400..500) {
        let what = format!("{} {number} of {}: {status} {code}", call.item, call.user);
        found.add(Rule::LostPeople, call.to, what);
    }
}

/// Nobody is told that they wait after having been told that they do not, unless it was lost that
/// they were let in; false if somebody is.
fn hear<'a>(story: &mut Story<'a>, call: &'a Call, old_news: Millis, losses: &Losses) -> bool {
    let Some(status) = call.seen().and_then(|seen| seen.status.as_deref()) else { return true };
    match status {
        "WAITING" => {
            let since = story.enterable.into_iter().chain(story.ended.map(|(at, _)| at)).min();
            let again = since.is_some_and(|since| {
                call.from > since + old_news && !losses.between(since, call.to)
            });
            return !again;
        }
        "ENTERABLE" => {
            story.enterable.get_or_insert(call.to);
        }
        end => {
            story.ended.get_or_insert((call.to, end));
        }
    }
    true
}

/// What is wrong with the end of a story.
fn ends(story: &Story<'_>, item: &str, number: u64, lines: &Lines<'_>) -> Vec<String> {
    let (ticket, losses) = (lines.ticket(item, number), &lines.losses);
    let mut wrong = Vec::new();
    let (let_in, reason) = (ticket.was_let_in(), ticket.reasons().next());
    // Who lost their place and joined anew without the token does not wait here any more, nor who
    // wanted to leave, nor who had heard of the end before it was lost.
    let first = story.first.unwrap_or(story.last);
    let took =
        |event, heard, by_time| lines.took_along(Missing { event, item, number, heard, by_time });
    let end_took = |(at, end): (Millis, &str)| took(Kind::Closed, at, ends_by_time(Some(end)));
    let forgotten = story.ended.is_some_and(end_took)
        || ((story.leaves || story.has_newer) && losses.between(first, Millis::MAX));
    if !let_in && reason.is_none() && !forgotten {
        wrong.push("still waits when all is over".to_owned());
    }
    // Others may not have heard that they were let in.
    let unheard = story.enterable.is_some_and(|at| took(Kind::Activated, at, false));
    // Whoever came anew after a loss and then shows the token has the place of old again.
    let replaced = story.has_older && reason == Some("REPLACED") && losses.between(0, first);
    if let Some(reason) = reason
        && !let_in
        && !story.leaves
        && !unheard
        && !replaced
    {
        wrong.push(format!("ended as {reason} without having been let in"));
    }
    if let (Some((at, told)), Some(reason)) = (story.ended, reason)
        && ticket.reasons().all(|reason| told != reason)
        && !end_took((at, told))
    {
        wrong.push(format!("was told {told}, others were told {reason}"));
    }
    wrong
}
