//! Lanes share the admissions of a line by their weights, and lanes that are first are served before all others.
//!
//! A lane is judged only while it certainly has tickets that can be admitted: a ticket counts from the reply to its join
//! until its admission. As long as a lane has such tickets, it has at least its share of the admissions, whichever other
//! lanes have tickets. If all lanes have some, nothing is left to take more than that.

use std::collections::BTreeMap;

use super::lines::Lines;
use super::membership::Membership;
use super::{Rule, Violations};
use crate::History;
use crate::history::{EventKind, Fault, FaultKind, ItemSetup, Millis, ObservedEvent, Setup};

/// How many admissions a lane may be behind its share. Lanes take turns, so that a lane is at most some tickets behind;
/// each other lane adds one at most.
const TOLERANCE: f64 = 5.0;

/// After a restart or a loss of the store, lanes hold the tickets that joined later for the recovery hold. So long after the
/// fault, in ms, they can be admitted, also if lanes detect it late.
const AFTER_RESTART: Millis = 15_000;

/// The admissions of all lanes in one round of the leader. Their order within the round has no meaning, because each
/// lane writes its events in one batch.
struct Round<'a> {
    at: Millis,
    era: usize,
    admitted: Vec<&'a ObservedEvent>,
}

/// A ticket that waited from a time on until its admission.
struct Waited {
    from: Millis,
    lane: u8,
    /// The index of the round.
    admitted_in: usize,
}

/// How many admissions were judged, for coverage.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Judged(pub(super) u64);

pub(super) fn judge(
    setup: &Setup,
    history: &History,
    lines: &Lines<'_>,
    violations: &mut Violations,
) -> Judged {
    let membership = Membership::from_history(history, lines);
    let restarts: Vec<_> = history.faults.iter().filter(|fault| restarts_store(fault)).collect();
    let mut judged = Judged::default();
    for item in setup.items.iter().filter(|item| !item.lanes.is_empty()) {
        let rounds = rounds(lines.events.get(item.item.as_str()), lines);
        let waited = waited(&item.item, &rounds, (&membership, &restarts), setup);
        for lane in 0..=item.lanes.len() {
            let mut service = LaneService::new(item, lane);
            for (index, round) in rounds.iter().enumerate() {
                let waits = waits_after(&waited, lane, (index, round), &rounds);
                service.follow(round, waits);
            }
            service.end_period();
            judged.0 += service.judged;
            for (at, what) in service.found {
                violations.add(Rule::LaneShares, at, format!("{}: {what}", item.item));
            }
        }
    }
    judged
}

/// Whether tickets of before this fault are served first.
fn restarts_store(fault: &Fault) -> bool {
    let restarts = fault.what == FaultKind::Kill || fault.what.loses_data();
    fault.target == "redis" && restarts
}

/// Groups the admissions by leaders into rounds, which share the time in the events.
fn rounds<'a>(events: Option<&Vec<&'a ObservedEvent>>, lines: &Lines<'_>) -> Vec<Round<'a>> {
    let mut rounds: Vec<Round<'_>> = Vec::new();
    let admissions = events.into_iter().flatten();
    for event in admissions.filter(|event| event.event == EventKind::Activated) {
        // An event without an epoch is a restored entry or a direct admission, which needs no share.
        if event.epoch.is_none() {
            continue;
        }
        let (at, era) = (event.at, lines.losses.era_of(event));
        match rounds.last_mut().filter(|round| (round.at, round.era) == (at, era)) {
            Some(round) => round.admitted.push(event),
            None => rounds.push(Round { at, era, admitted: vec![event] }),
        }
    }
    rounds
}

/// The tickets that were admitted, with the time from which they certainly could be, in the era of their admission.
fn waited(
    item: &str,
    rounds: &[Round<'_>],
    (membership, restarts): (&Membership<'_>, &[&Fault]),
    setup: &Setup,
) -> Vec<Waited> {
    let mut waited = Vec::new();
    for (admitted_in, round) in rounds.iter().enumerate() {
        for event in &round.admitted {
            if let Some(since) = membership.waits_since(item, event.number, round.era) {
                let held_by = restarts.iter().filter(|fault| fault.from <= since);
                let held_until = held_by.map(|fault| fault.to + AFTER_RESTART).max().unwrap_or(0);
                let (from, lane) = (since.max(held_until) + setup.clock_skew, event.number.lane);
                waited.push(Waited { from, lane, admitted_in });
            }
        }
    }
    waited
}

/// Whether a ticket of the lane waited in this round and was admitted in a later one of the same era.
fn waits_after(
    waited: &[Waited],
    lane: usize,
    (index, round): (usize, &Round<'_>),
    rounds: &[Round<'_>],
) -> bool {
    waited.iter().any(|ticket| {
        usize::from(ticket.lane) == lane
            && ticket.from <= round.at
            && ticket.admitted_in > index
            && rounds[ticket.admitted_in].era == round.era
    })
}

/// Follows the admissions while a lane has tickets.
struct LaneService<'a> {
    item: &'a ItemSetup,
    lane: usize,
    /// The part of the admissions of lanes with a weight; `None` for a lane that is first.
    share: Option<f64>,
    /// How many admissions of its share the lane did not get, the least of that since it has tickets, and the most above
    /// the least with its time.
    behind: f64,
    least: f64,
    worst: (f64, Millis),
    judged: u64,
    found: Vec<(Millis, String)>,
}

impl<'a> LaneService<'a> {
    fn new(item: &'a ItemSetup, lane: usize) -> Self {
        let weight = match lane {
            0 => Some(100 - item.lanes.iter().filter_map(|lane| lane.weight).sum::<u32>()),
            _ => item.lanes[lane - 1].weight,
        };
        let share = weight.map(|weight| f64::from(weight) / 100.0);
        let (worst, found) = ((0.0, 0), Vec::new());
        Self { item, lane, share, behind: 0.0, least: 0.0, worst, judged: 0, found }
    }

    fn weight(&self, lane: u8) -> Option<u32> {
        let first = usize::from(lane).checked_sub(1).and_then(|at| self.item.lanes.get(at));
        first.map_or(Some(100), |lane| lane.weight)
    }

    fn follow(&mut self, round: &Round<'_>, waits: bool) {
        if !waits {
            self.end_period();
            return;
        }
        let mut by_lane: BTreeMap<u8, u32> = BTreeMap::new();
        for event in &round.admitted {
            *by_lane.entry(event.number.lane).or_default() += 1;
        }
        let weighted = by_lane.iter().filter(|(lane, _)| self.weight(**lane).is_some());
        let weighted: u32 = weighted.map(|(_, count)| count).sum();
        self.judged += u64::from(weighted);
        let Some(share) = self.share else {
            if weighted > 0 {
                let what = format!(
                    "{weighted} admitted while {} had tickets, which is first",
                    self.name()
                );
                self.found.push((round.at, what));
            }
            return;
        };
        let own = u8::try_from(self.lane).ok().and_then(|lane| by_lane.get(&lane));
        self.behind += share * f64::from(weighted) - f64::from(own.copied().unwrap_or(0));
        self.least = self.least.min(self.behind);
        if self.behind - self.least > self.worst.0 {
            self.worst = (self.behind - self.least, round.at);
        }
    }

    /// Ends a period in which the lane had tickets.
    fn end_period(&mut self) {
        let (worst, at) = self.worst;
        if let Some(share) = self.share.filter(|_| worst > TOLERANCE) {
            let what =
                format!("{} was {worst:.0} admissions behind its share {share}", self.name());
            self.found.push((at, what));
        }
        (self.behind, self.least, self.worst) = (0.0, 0.0, (0.0, 0));
    }

    fn name(&self) -> String {
        let lane = self.lane.checked_sub(1).and_then(|at| self.item.lanes.get(at));
        lane.map_or("the standard lane".to_owned(), |lane| format!("lane {}", lane.name))
    }
}
