//! At most one leader per term, and a leader without a fault keeps its term.

use std::collections::HashMap;

use super::{Rule, Violations};
use crate::History;
use crate::history::{Fault, FaultKind, Millis, Setup, Term, TermEnd};

/// A leader notices a lost lease when it expires, and at most so long after that, in ms.
const AFTERMATH: Millis = 1_500;

pub(super) fn judge(setup: &Setup, history: &History, violations: &mut Violations) {
    let mut leaders: HashMap<u64, &Term> = HashMap::new();
    for term in &history.terms {
        let (member, epoch) = (&term.member, term.epoch);
        if let Some(other) = leaders.insert(epoch, term) {
            let what = format!("term {epoch} has two leaders, {member} and {}", other.member);
            violations.add(Rule::Leadership, term.from, what);
        }
        if matches!(term.end, TermEnd::LeaseLost | TermEnd::Fenced)
            && !history.faults.iter().any(|fault| explains(fault, term, setup.lease))
        {
            let what = format!("{member} lost term {epoch} without a fault");
            violations.add(Rule::Leadership, term.to, what);
        }
    }
}

/// Whether a fault of this leader or of Redis explains the end of the term.
fn explains(fault: &Fault, term: &Term, lease: Millis) -> bool {
    let concerns = fault.target == term.member || fault.target == "redis";
    let felt = fault.to + lease + AFTERMATH >= term.to && fault.from <= term.to;
    concerns && felt && fault.what != FaultKind::Stop
}
