//! Counts per second.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Time;
use super::lanes::colour_of;
use crate::History;
use crate::history::{EventKind, Op};

type Bars = Vec<Vec<(&'static str, u64)>>;

const DIRECT: &str = "#b9bec6";
const WAITING: &str = "#9db8d9";
const ERRORS: &str = "#e0705f";

/// One colour per lane, the standard lane first.
const LANES: [&str; 4] = ["#3b6fb6", "#2a9d8f", "#c9b037", "#8a5fb0"];

/// The data of the charts.
pub(super) struct Counts {
    pub(super) admitted: Bars,
    pub(super) lanes: Bars,
    pub(super) waiting: Bars,
    pub(super) errors: Bars,
}

impl Counts {
    pub(super) fn from_history(history: &History, time: &Time) -> Self {
        Self {
            admitted: admitted(history, time),
            lanes: lanes(history, time),
            waiting: waiting(history, time),
            errors: errors(history, time),
        }
    }
}

/// Admissions in the colour of the leader.
fn admitted(history: &History, time: &Time) -> Bars {
    let leaders: HashMap<u64, &str> =
        history.terms.iter().map(|term| (term.epoch, colour_of(&term.member))).collect();
    let mut seconds = vec![BTreeMap::new(); time.seconds()];
    let mut received = HashSet::new();
    for event in history.events.iter().filter(|event| event.event == EventKind::Activated) {
        if let Some(second) = time.second(event.at)
            && received.insert(&event.id)
        {
            let leader = event.epoch.and_then(|epoch| leaders.get(&epoch)).copied();
            *seconds[second].entry(leader.unwrap_or(DIRECT)).or_default() += 1;
        }
    }
    seconds.into_iter().map(|stack| stack.into_iter().collect()).collect()
}

/// Admissions of lines with lanes, in the colour of the lane.
fn lanes(history: &History, time: &Time) -> Bars {
    let items = history.setup.iter().flat_map(|setup| &setup.items);
    let with_lanes: HashSet<_> =
        items.filter(|item| !item.lanes.is_empty()).map(|item| &item.item).collect();
    let mut seconds = vec![[0; LANES.len()]; time.seconds()];
    let mut received = HashSet::new();
    for event in history.events.iter().filter(|event| event.event == EventKind::Activated) {
        if with_lanes.contains(&event.item)
            && received.insert(&event.id)
            && let Some(second) = time.second(event.at)
        {
            seconds[second][usize::from(event.number.lane) % LANES.len()] += 1;
        }
    }
    seconds.into_iter().map(|counts| LANES.into_iter().zip(counts).collect()).collect()
}

/// Waiting users at the end of each second.
fn waiting(history: &History, time: &Time) -> Bars {
    let mut change = vec![0_i64; time.seconds()];
    let mut joined = HashSet::new();
    let joins = history.calls.iter().filter(|call| call.op == Op::Join);
    for call in joins {
        let number = call.reply().and_then(|reply| reply.number);
        if let (Some(number), Some(second)) = (number, time.second(call.to))
            && joined.insert((&call.item, number))
        {
            change[second] += 1;
        }
    }
    let mut left = HashSet::new();
    for event in &history.events {
        if let Some(second) = time.second(event.at)
            && joined.contains(&(&event.item, event.number))
            && left.insert((&event.item, event.number))
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
        if let (true, Some(second)) = (call.outcome.has_unknown_effect(), time.second(call.to)) {
            seconds[second] += 1;
        }
    }
    seconds.into_iter().map(|count| vec![(ERRORS, count)]).collect()
}
