//! Trouble is told as trouble: 503 with a time to come back, never a 500. Where nothing happens but
//! that a replica takes over, it is also told soon, and over soon.

use super::{Findings, Rule};
use crate::History;
use crate::history::{Call, FaultKind, Millis, Outcome};

/// The longest that anybody waits for an answer while a replica takes over.
const LONGEST: Millis = 2_000;

/// When everybody must be served again.
const BACK: Millis = 10_000;

pub(super) fn judge(history: &History, found: &mut Findings) {
    for call in &history.calls {
        let Outcome::Refused { status, code } = &call.outcome else { continue };
        if *status >= 500 && *status != 503 {
            found.add(Rule::Answers, call.to, format!("{}: {status} {code}", name(call)));
        }
    }
    if history.faults.iter().any(|fault| fault.what == FaultKind::FailOver) {
        soon(history, found);
    }
}

fn soon(history: &History, found: &mut Findings) {
    for call in &history.calls {
        let took = call.to.saturating_sub(call.from);
        if took > LONGEST {
            found.add(Rule::Answers, call.to, format!("{} took {took} ms", name(call)));
        }
        // A machine that stood still explains it, too.
        let begun = |since: Millis| (since..since + BACK).contains(&call.from);
        let explained = history.faults.iter().any(|fault| begun(fault.from));
        if let Outcome::Unknown(why) = &call.outcome
            && !explained
        {
            let what = format!("{} more than {BACK} ms after a fail-over: {why}", name(call));
            found.add(Rule::Answers, call.to, what);
        }
    }
}

fn name(call: &Call) -> String {
    format!("{:?} {} of {}", call.op, call.item, call.user)
}
