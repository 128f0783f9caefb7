//! Errors are 503 with `Retry-After`, never 500, and valid calls are not refused. During a Redis fail-over, calls also end
//! quickly, and errors stop soon.

use super::data_loss::DataLosses;
use super::{Rule, Violations};
use crate::History;
use crate::history::{Call, FaultKind, Millis, Op, Outcome};

/// Maximum duration of a call during a fail-over, in ms.
const MAX_CALL_MS: Millis = 2_000;

/// Maximum duration of errors after the start of a fail-over, in ms.
const MAX_OUTAGE_MS: Millis = 10_000;

/// After a total loss, and after a fault of Kafka or a consumer that follows it, an item may be unknown for so long, in ms.
pub(super) const ITEM_RECOVERY_MS: Millis = 30_000;

pub(super) fn judge(history: &History, losses: &DataLosses, violations: &mut Violations) {
    for call in &history.calls {
        if let Some(what) = invalid_response(call, losses) {
            violations.add(Rule::Responses, call.to, format!("{}: {what}", name(call)));
        }
    }
    if history.faults.iter().any(|fault| fault.what == FaultKind::FailOver) {
        check_fail_over(history, violations);
    }
}

/// Describes an invalid response. Refusals of tickets are judged as lost tickets.
fn invalid_response(call: &Call, losses: &DataLosses) -> Option<String> {
    match &call.outcome {
        Outcome::Malformed { status, what } => Some(format!("{status} {what}")),
        Outcome::Unavailable { code, after: None } => {
            Some(format!("503 {code} without Retry-After"))
        }
        Outcome::Refused { status, code } if *status >= 500 => Some(format!("{status} {code}")),
        // Judged with the code.
        Outcome::Refused { .. } if call.is_refused_code() && call.code.is_some() => None,
        Outcome::Refused { status, code } if matches!(call.op, Op::Join | Op::Complete) => {
            let lost = *status == 404 && losses.may_hide_items(call.to);
            (!lost).then(|| format!("{status} {code}"))
        }
        _ => None,
    }
}

fn check_fail_over(history: &History, violations: &mut Violations) {
    for call in &history.calls {
        let took = call.to.saturating_sub(call.from);
        if took > MAX_CALL_MS {
            violations.add(Rule::Responses, call.to, format!("{} took {took} ms", name(call)));
        }
        // A stall of the machine also explains an error, and the call may have begun before the fault.
        let during = |since: Millis| call.to >= since && call.from < since + MAX_OUTAGE_MS;
        let explained = history.faults.iter().any(|fault| during(fault.from));
        if call.outcome.has_unknown_effect() && !explained {
            let why = &call.outcome;
            let what =
                format!("{} more than {MAX_OUTAGE_MS} ms after a fail-over: {why:?}", name(call));
            violations.add(Rule::Responses, call.to, what);
        }
    }
}

fn name(call: &Call) -> String {
    format!("{:?} {} of {}", call.op, call.item, call.user)
}
