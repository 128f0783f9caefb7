//! Trouble is told as trouble: 503 with a time to come back, never a 500, and nobody is refused who did
//! nothing wrong. Where nothing happens but that a replica takes over, it is also told soon, and over
//! soon.

use super::losses::Losses;
use super::{Findings, Rule};
use crate::History;
use crate::history::{Call, FaultKind, Millis, Op, Outcome};

/// The longest that anybody waits for an answer while a replica takes over.
const LONGEST: Millis = 2_000;

/// When everybody must be served again.
const BACK: Millis = 10_000;

/// So long after everything was lost an item may not be known: Kafka may be away, too.
const ITEMS_BACK: Millis = 30_000;

pub(super) fn judge(history: &History, losses: &Losses, found: &mut Findings) {
    for call in &history.calls {
        if let Some(what) = wrong(call, losses) {
            found.add(Rule::Answers, call.to, format!("{}: {what}", name(call)));
        }
    }
    if history.faults.iter().any(|fault| fault.what == FaultKind::FailOver) {
        soon(history, found);
    }
}

/// What nobody may be answered. Refusals of tickets are judged as lost people.
fn wrong(call: &Call, losses: &Losses) -> Option<String> {
    match &call.outcome {
        Outcome::Broken { status, what } => Some(format!("{status} {what}")),
        Outcome::Later { code, after: None } => Some(format!("503 {code} without Retry-After")),
        Outcome::Refused { status, code } if *status >= 500 => Some(format!("{status} {code}")),
        Outcome::Refused { status, code } if matches!(call.op, Op::Join | Op::Complete) => {
            let lost = *status == 404 && losses.hid_items(call.to, ITEMS_BACK);
            (!lost).then(|| format!("{status} {code}"))
        }
        _ => None,
    }
}

fn soon(history: &History, found: &mut Findings) {
    for call in &history.calls {
        let took = call.to.saturating_sub(call.from);
        if took > LONGEST {
            found.add(Rule::Answers, call.to, format!("{} took {took} ms", name(call)));
        }
        // A machine that stood still explains it, too; and a call may have been on its way already.
        let during = |since: Millis| call.to >= since && call.from < since + BACK;
        let explained = history.faults.iter().any(|fault| during(fault.from));
        if call.outcome.is_unsure() && !explained {
            let why = &call.outcome;
            let what = format!("{} more than {BACK} ms after a fail-over: {why:?}", name(call));
            found.add(Rule::Answers, call.to, what);
        }
    }
}

fn name(call: &Call) -> String {
    format!("{:?} {} of {}", call.op, call.item, call.user)
}
