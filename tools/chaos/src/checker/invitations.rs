//! An invitation code admits as many users to its lane as it has uses.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::data_loss::DataLosses;
use super::{Rule, Violations};
use crate::History;
use crate::history::{Call, IssuedCode, Op};

pub(super) fn judge(history: &History, losses: &DataLosses, violations: &mut Violations) {
    let mut joins: HashMap<&str, Vec<&Call>> = HashMap::new();
    for call in history.calls.iter().filter(|call| call.op == Op::Join) {
        if let Some(code) = &call.code {
            joins.entry(code).or_default().push(call);
        }
    }
    for code in &history.codes {
        let joins = joins.get(code.code.as_str()).map(Vec::as_slice).unwrap_or_default();
        check_uses(code, joins, losses, violations);
        check_refusals(code, joins, losses, violations);
    }
}

/// A data loss also loses the count of a code, so that each era has its own.
fn check_uses(
    code: &IssuedCode,
    joins: &[&Call],
    losses: &DataLosses,
    violations: &mut Violations,
) {
    let mut users: HashSet<&str> = HashSet::new();
    let mut by_era: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for call in joins {
        let lane = call.reply().and_then(|reply| reply.number).map(|number| number.lane);
        if lane != Some(code.lane) || !users.insert(&call.user) {
            continue;
        }
        // The era of a join during a data loss is unknown.
        if losses.era(call.from) == losses.era(call.to) {
            let of_era = by_era.entry(losses.era(call.from)).or_default();
            of_era.push(&call.user);
            if of_era.len() as u64 > u64::from(code.uses) {
                let (item, code, uses) = (&code.item, &code.code, code.uses);
                let what = format!("{item}: {code} has {uses} uses, and admitted {of_era:?}");
                violations.add(Rule::Invitations, call.to, what);
            }
        }
    }
}

/// A code is refused only if other users may have used it up.
fn check_refusals(
    code: &IssuedCode,
    joins: &[&Call],
    losses: &DataLosses,
    violations: &mut Violations,
) {
    for call in joins.iter().filter(|call| call.is_refused_code()) {
        let others = joins.iter().filter(|other| other.user != call.user && other.from <= call.to);
        let others = others.map(|other| &other.user).collect::<HashSet<_>>().len() as u64;
        // Uses of before a fail-over may be stored or not.
        if others < u64::from(code.uses) && !losses.between(0, call.to) {
            let (item, code, user) = (&code.item, &code.code, &call.user);
            let what = format!("{item}: {code} of {user} was refused, {others} others had it");
            violations.add(Rule::Invitations, call.to, what);
        }
    }
}
