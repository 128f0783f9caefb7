//! No ticket is lost: every waiting ticket is admitted or ends, and replies agree with the events.

use std::collections::HashMap;

use super::data_loss::DataLosses;
use super::lines::{Lines, Missing, ends_by_time};
use super::{Rule, Violations};
use crate::History;
use crate::history::{Call, EventKind, Millis, Op, Outcome, Setup, TicketNumber};

/// The replies about one number.
#[derive(Debug, Default)]
struct TicketTimeline<'a> {
    user: &'a str,
    /// First reply with the number.
    first: Option<Millis>,
    /// First reply `ENTERABLE`.
    enterable: Option<Millis>,
    /// First reply with an end, and its status.
    ended: Option<(Millis, &'a str)>,
    /// Last reply.
    last: Millis,
    /// Whether the user called leave.
    leaves: bool,
    /// Whether the user also had a lower or a higher number in the lane.
    has_older: bool,
    has_newer: bool,
    /// Whether the user moved to another lane.
    has_moved: bool,
}

pub(super) fn judge(
    setup: &Setup,
    history: &History,
    lines: &Lines<'_>,
    violations: &mut Violations,
) {
    let mut timelines: HashMap<(&str, TicketNumber), TicketTimeline<'_>> = HashMap::new();
    let mut numbers: HashMap<(&str, &str), HashMap<TicketNumber, Millis>> = HashMap::new();
    for call in &history.calls {
        let Some(number) = call.number() else { continue };
        let of_user = numbers.entry((&call.item, &call.user)).or_default();
        of_user.entry(number).or_insert(call.to);
        let ticket_timeline = timelines.entry((&call.item, number)).or_default();
        ticket_timeline.user = &call.user;
        ticket_timeline.first.get_or_insert(call.to);
        ticket_timeline.last = ticket_timeline.last.max(call.to);
        ticket_timeline.leaves |= call.op == Op::Leave;
        refused(call, number, violations);
        if !apply_reply(ticket_timeline, call, setup.max_staleness, &lines.losses) {
            let what = format!(
                "{} {number} of {}: waits again after an admission or an end",
                call.item, call.user
            );
            violations.add(Rule::LostTickets, call.to, what);
        }
    }
    for ((item, number), mut ticket_timeline) in timelines {
        for (other, first) in numbers.get(&(item, ticket_timeline.user)).into_iter().flatten() {
            let same_lane = other.lane == number.lane;
            ticket_timeline.has_older |= same_lane && *other < number;
            ticket_timeline.has_newer |= same_lane && *other > number;
            ticket_timeline.has_moved |=
                !same_lane && other.lane > 0 && Some(*first) > ticket_timeline.first;
        }
        let name = format!("{item} {number} of {}", ticket_timeline.user);
        for what in check_end(&ticket_timeline, item, number, lines) {
            violations.add(Rule::LostTickets, ticket_timeline.last, format!("{name}: {what}"));
        }
    }
}

/// A 4xx response for an issued ticket is a violation.
fn refused(call: &Call, number: TicketNumber, violations: &mut Violations) {
    let (Op::Poll | Op::Leave, Outcome::Refused { status, code }) = (call.op, &call.outcome) else {
        return;
    };
    if matches!(status, 400..500) {
        let what = format!("{} {number} of {}: {status} {code}", call.item, call.user);
        violations.add(Rule::LostTickets, call.to, what);
    }
}

/// Applies a reply. Returns `false` if it says `WAITING` after an admission or an end, without a data loss in between.
fn apply_reply<'a>(
    ticket_timeline: &mut TicketTimeline<'a>,
    call: &'a Call,
    max_staleness: Millis,
    losses: &DataLosses,
) -> bool {
    let Some(status) = call.reply().and_then(|reply| reply.status.as_deref()) else { return true };
    match status {
        "WAITING" => {
            let since = ticket_timeline
                .enterable
                .into_iter()
                .chain(ticket_timeline.ended.map(|(at, _)| at))
                .min();
            let again = since.is_some_and(|since| {
                call.from > since + max_staleness && !losses.between(since, call.to)
            });
            return !again;
        }
        "ENTERABLE" => {
            ticket_timeline.enterable.get_or_insert(call.to);
        }
        end => {
            ticket_timeline.ended.get_or_insert((call.to, end));
        }
    }
    true
}

/// Violations at the end of a timeline.
fn check_end(
    ticket_timeline: &TicketTimeline<'_>,
    item: &str,
    number: TicketNumber,
    lines: &Lines<'_>,
) -> Vec<String> {
    let (ticket, losses) = (lines.ticket(item, number), &lines.losses);
    let mut violations = Vec::new();
    let (admitted, reason) = (ticket.was_admitted(), ticket.reasons().next());
    // After a data loss a ticket is not missed if the user joined again without the token, called leave, or had seen the end
    // before the loss.
    let first = ticket_timeline.first.unwrap_or(ticket_timeline.last);
    let may_have_lost = |event, observed_at, by_time| {
        lines.may_have_lost(Missing { event, item, number, observed_at, by_time })
    };
    let end_may_be_lost =
        |(at, end): (Millis, &str)| may_have_lost(EventKind::Closed, at, ends_by_time(Some(end)));
    let explained = ticket_timeline.ended.is_some_and(end_may_be_lost)
        || ((ticket_timeline.leaves || ticket_timeline.has_newer || ticket_timeline.has_moved)
            && losses.between(first, Millis::MAX));
    if !admitted && reason.is_none() && !explained {
        violations.push("still waits at the end".to_owned());
    }
    // The admission may have been lost before it was published.
    let admission_lost =
        ticket_timeline.enterable.is_some_and(|at| may_have_lost(EventKind::Activated, at, false));
    // A user who joined again after a data loss and then polls with the old token reclaims the old number. A user
    // who moves to another lane gives up the ticket in the first one.
    let replaced = reason == Some("REPLACED")
        && (ticket_timeline.has_moved || (ticket_timeline.has_older && losses.between(0, first)));
    if let Some(reason) = reason
        && !admitted
        && !ticket_timeline.leaves
        && !admission_lost
        && !replaced
    {
        violations.push(format!("ended as {reason} without an admission"));
    }
    if let (Some((at, replied)), Some(reason)) = (ticket_timeline.ended, reason)
        && ticket.reasons().all(|reason| replied != reason)
        && !end_may_be_lost((at, replied))
    {
        violations.push(format!("reply {replied}, event {reason}"));
    }
    violations
}
