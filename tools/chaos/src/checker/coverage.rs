//! The history contains enough to judge: most users were admitted, lanes shared admissions, and the final state of every line
//! is known.

use std::collections::HashSet;

use super::lane_shares::Judged;
use super::{Rule, Violations};
use crate::History;
use crate::history::{EventKind, Op, Setup};

/// Admissions of lines with lanes, counted for each lane that has tickets. Fewer than this say nothing about shares.
const MIN_SHARED_ADMISSIONS: u64 = 20;

pub(super) fn judge(setup: &Setup, history: &History, shares: Judged, violations: &mut Violations) {
    let mut missing = |what: String| violations.add(Rule::Coverage, setup.to, what);
    for item in &setup.items {
        if !history.finals.iter().any(|end| end.item == item.item) {
            missing(format!("{}: final state unknown", item.item));
        }
    }
    let (users, joined, admitted) = (setup.users, joined(history), admitted(history));
    if joined * 10 < users * 9 {
        missing(format!("only {joined} of {users} users joined"));
    }
    if admitted * 4 < users * 3 {
        missing(format!("only {admitted} of {users} users were admitted"));
    }
    let has_lanes = setup.items.iter().any(|item| !item.lanes.is_empty());
    if users > 0 && has_lanes && shares.0 < MIN_SHARED_ADMISSIONS {
        missing(format!("only {} admissions while a lane had tickets", shares.0));
    }
    if users > 0 && history.terms.is_empty() {
        missing("no term of a leader".to_owned());
    }
}

fn joined(history: &History) -> u64 {
    let given = history.calls.iter().filter(|call| {
        call.op == Op::Join && call.reply().is_some_and(|reply| reply.number.is_some())
    });
    given.map(|call| (&call.item, &call.user)).collect::<HashSet<_>>().len() as u64
}

fn admitted(history: &History) -> u64 {
    let admissions =
        history.events.iter().filter(|observed| observed.event == EventKind::Activated);
    admissions.map(|observed| (&observed.item, &observed.user)).collect::<HashSet<_>>().len() as u64
}
