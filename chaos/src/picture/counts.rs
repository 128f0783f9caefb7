//! What happened in every second.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Time;
use super::lanes::colour_of;
use crate::History;
use crate::history::{Kind, Op};

type Bars = Vec<Vec<(&'static str, u64)>>;

const THROUGH: &str = "#b9bec6";
const WAITING: &str = "#9db8d9";
const ERRORS: &str = "#e0705f";

/// What the charts show.
pub(super) struct Counts {
    pub(super) admitted: Bars,
    pub(super) waiting: Bars,
    pub(super) errors: Bars,
}

impl Counts {
    pub(super) fn of(history: &History, time: &Time) -> Self {
        Self {
            admitted: admitted(history, time),
            waiting: waiting(history, time),
            errors: errors(history, time),
        }
    }
}

/// People let in, in the colour of whoever led.
fn admitted(history: &History, time: &Time) -> Bars {
    let leaders: HashMap<u64, &str> =
        history.terms.iter().map(|term| (term.epoch, colour_of(&term.member))).collect();
    let mut seconds = vec![BTreeMap::new(); time.seconds()];
    let mut heard = HashSet::new();
    for told in history.told.iter().filter(|told| told.event == Kind::Activated) {
        if let Some(second) = time.second(told.at)
            && heard.insert(&told.id)
        {
            let leader = told.epoch.and_then(|epoch| leaders.get(&epoch)).copied();
            *seconds[second].entry(leader.unwrap_or(THROUGH)).or_default() += 1;
        }
    }
    seconds.into_iter().map(|stack| stack.into_iter().collect()).collect()
}

/// How many had a place and were not let in yet, at the end of each second.
fn waiting(history: &History, time: &Time) -> Bars {
    let mut change = vec![0_i64; time.seconds()];
    let mut came = HashSet::new();
    let joins = history.calls.iter().filter(|call| call.op == Op::Join);
    for call in joins {
        let number = call.seen().and_then(|seen| seen.number);
        if let (Some(number), Some(second)) = (number, time.second(call.to))
            && came.insert((&call.item, number))
        {
            change[second] += 1;
        }
    }
    let mut gone = HashSet::new();
    for told in &history.told {
        if let Some(second) = time.second(told.at)
            && came.contains(&(&told.item, told.number))
            && gone.insert((&told.item, told.number))
        {
            change[second] -= 1;
        }
    }
    let mut wait = 0;
    let counted = change.into_iter().map(|by| {
        wait += by;
        vec![(WAITING, u64::try_from(wait).unwrap_or(0))]
    });
    counted.collect()
}

fn errors(history: &History, time: &Time) -> Bars {
    let mut seconds = vec![0; time.seconds()];
    for call in &history.calls {
        if let (true, Some(second)) = (call.outcome.is_unsure(), time.second(call.to)) {
            seconds[second] += 1;
        }
    }
    seconds.into_iter().map(|count| vec![(ERRORS, count)]).collect()
}
