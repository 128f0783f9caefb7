//! Nobody loses their place: whoever waits is let in, and is told what is true.

use std::collections::HashMap;

use super::lines::{Lines, Ticket};
use super::{Findings, Rule};
use crate::History;
use crate::history::{Call, Millis, Op, Outcome};

/// A pod that was paused, or cannot reach Redis, may tell what was true so long ago.
const OLD_NEWS: Millis = 5_000;

/// What a person knows about a number.
#[derive(Debug, Default)]
struct Story<'a> {
    user: &'a str,
    /// When they first heard that they may enter.
    enterable: Option<Millis>,
    /// When and how they first heard of the end.
    ended: Option<(Millis, &'a str)>,
    /// When they last heard anything.
    last: Millis,
    /// Whether they asked to be taken out.
    leaves: bool,
}

pub(super) fn judge(history: &History, lines: &Lines<'_>, found: &mut Findings) {
    let mut stories: HashMap<(&str, u64), Story<'_>> = HashMap::new();
    for call in &history.calls {
        let Some(number) = call.number() else { continue };
        let story = stories.entry((&call.item, number)).or_default();
        story.user = &call.user;
        story.last = story.last.max(call.to);
        story.leaves |= call.op == Op::Leave;
        refused(call, number, found);
        hear(story, call, number, found);
    }
    for ((item, number), story) in stories {
        let ticket = lines.ticket(item, number);
        let name = format!("{item} {number} of {}", story.user);
        for what in ends(&story, ticket) {
            found.add(Rule::LostPeople, story.last, format!("{name}: {what}"));
        }
    }
}

/// A ticket that was given is a ticket.
fn refused(call: &Call, number: u64, found: &mut Findings) {
    let (Op::Poll | Op::Leave, Outcome::Refused { status, code }) = (call.op, &call.outcome) else {
        return;
    };
    if matches!(status, 401 | 403 | 404 | 409 | 410) {
        let what = format!("{} {number} of {}: {status} {code}", call.item, call.user);
        found.add(Rule::LostPeople, call.to, what);
    }
}

/// Nobody is told that they wait after having been told that they do not.
fn hear<'a>(story: &mut Story<'a>, call: &'a Call, number: u64, found: &mut Findings) {
    let Some(status) = call.seen().and_then(|seen| seen.status.as_deref()) else { return };
    match status {
        "WAITING" => {
            let since = story.enterable.into_iter().chain(story.ended.map(|(at, _)| at)).min();
            if since.is_some_and(|since| call.from > since + OLD_NEWS) {
                let what = format!("{} {number} of {}: waits again", call.item, call.user);
                found.add(Rule::LostPeople, call.to, what);
            }
        }
        "ENTERABLE" => {
            story.enterable.get_or_insert(call.to);
        }
        end => {
            story.ended.get_or_insert((call.to, end));
        }
    }
}

/// What is wrong with the end of a story.
fn ends(story: &Story<'_>, ticket: Ticket<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    let reason = ticket.closed.and_then(|closed| closed.reason.as_deref());
    if ticket.activated.is_none() && reason.is_none() {
        wrong.push("still waits when all is over".to_owned());
    }
    if ticket.activated.is_none() && reason.is_some() && !story.leaves {
        wrong.push(format!("ended as {} without having been let in", reason.unwrap_or_default()));
    }
    if let (Some((_, told)), Some(reason)) = (story.ended, reason)
        && told != reason
    {
        wrong.push(format!("was told {told}, others were told {reason}"));
    }
    wrong
}
