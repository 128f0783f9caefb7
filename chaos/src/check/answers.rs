//! Trouble is told as trouble: 503 with a time to come back, never a 500.

use super::{Findings, Rule};
use crate::History;
use crate::history::Outcome;

pub(super) fn judge(history: &History, found: &mut Findings) {
    for call in &history.calls {
        let Outcome::Refused { status, code } = &call.outcome else { continue };
        if *status >= 500 && *status != 503 {
            let what = format!("{:?} {} of {}: {status} {code}", call.op, call.item, call.user);
            found.add(Rule::Answers, call.to, what);
        }
    }
}
