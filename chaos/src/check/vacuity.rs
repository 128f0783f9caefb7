//! A verdict on nothing is worth nothing: most people came in, and the end of every line was seen.

use std::collections::HashSet;

use super::{Findings, Rule};
use crate::History;
use crate::history::{Kind, Op, Setup};

pub(super) fn judge(setup: &Setup, history: &History, found: &mut Findings) {
    let mut missing = |what: String| found.add(Rule::Vacuity, setup.to, what);
    for item in &setup.items {
        if !history.finals.iter().any(|end| end.item == item.item) {
            missing(format!("{}: nobody saw how it ended", item.item));
        }
    }
    let (people, came, entered) = (setup.people, came(history), entered(history));
    if came * 10 < people * 9 {
        missing(format!("only {came} of {people} people had a place"));
    }
    if entered * 4 < people * 3 {
        missing(format!("only {entered} of {people} people were let in"));
    }
    if people > 0 && history.terms.is_empty() {
        missing("nobody led".to_owned());
    }
}

fn came(history: &History) -> u64 {
    let given = history.calls.iter().filter(|call| {
        call.op == Op::Join && call.seen().is_some_and(|seen| seen.number.is_some())
    });
    given.map(|call| (&call.item, &call.user)).collect::<HashSet<_>>().len() as u64
}

fn entered(history: &History) -> u64 {
    let let_in = history.told.iter().filter(|told| told.event == Kind::Activated);
    let_in.map(|told| (&told.item, &told.user)).collect::<HashSet<_>>().len() as u64
}
