//! One leader at a time, and nobody takes over from one that is well.

use std::collections::HashMap;

use super::{Findings, Rule};
use crate::History;
use crate::history::{Ending, Fault, FaultKind, Millis, Setup, Term};

/// A lease that a fault has cost is missed when it would have run out, and so long after that at most.
const AFTERMATH: Millis = 1_500;

pub(super) fn judge(setup: &Setup, history: &History, found: &mut Findings) {
    let mut leaders: HashMap<u64, &Term> = HashMap::new();
    for term in &history.terms {
        let (member, epoch) = (&term.member, term.epoch);
        if let Some(other) = leaders.insert(epoch, term) {
            let what = format!("term {epoch} is {member}'s and {}'s", other.member);
            found.add(Rule::Leadership, term.from, what);
        }
        if matches!(term.ending, Ending::Lost | Ending::Refused)
            && !history.faults.iter().any(|fault| explains(fault, term, setup.lease))
        {
            let what = format!("{member} was well, and lost term {epoch}");
            found.add(Rule::Leadership, term.to, what);
        }
    }
}

/// Whether a fault of this leader or of Redis was felt when the term ended.
fn explains(fault: &Fault, term: &Term, lease: Millis) -> bool {
    let concerns = fault.target == term.member || fault.target == "redis";
    let felt = fault.to + lease + AFTERMATH >= term.to && fault.from <= term.to;
    concerns && felt && fault.what != FaultKind::Stop
}
