use std::collections::BTreeMap;
use std::mem;

use daegi_domain::line_rules::Occupancy;
use daegi_domain::{Item, ItemControl, Lane, LineControl, Millis, Number, UserId};

use super::line::{ItemState, Line};
use crate::types::{LaneCounts, LineCounts};

/// The lines of all lanes of one item.
///
/// The state of the item is in the standard lane's line. It moves to the line of another lane while a step
/// runs on that one, so that a rule sees a line and its item, whatever the lane.
#[derive(Debug, Clone)]
pub(super) struct ItemLines {
    pub(super) standard: Line,
    /// The lanes that a ticket was issued in.
    lanes: BTreeMap<Lane, Line>,
}

impl ItemLines {
    pub(super) fn new(item: Item, run_id: u64, now: Millis) -> Self {
        let standard = Line::new(ItemState::new(item), Lane::STANDARD, run_id, now);
        Self { standard, lanes: BTreeMap::new() }
    }

    /// Returns the state of the item.
    pub(super) fn shared(&self) -> &ItemState {
        &self.standard.shared
    }

    /// Returns the lanes of the policy and those that have a line, the standard lane first. Entries may outlive
    /// the lane in the policy, because an item may be removed and created again.
    pub(super) fn lanes(&self) -> impl Iterator<Item = Lane> + use<> {
        let in_policy = self.shared().item.policy.lanes.len();
        let highest = self.lanes.keys().next_back().map_or(0, |lane| lane.index());
        (0..=in_policy.max(highest)).filter_map(Lane::numbered)
    }

    /// Returns whether the policy has a lane.
    pub(super) fn has_lane(&self, lane: Lane) -> bool {
        lane.index() <= self.shared().item.policy.lanes.len()
    }

    /// Runs a step on the line of a lane. Returns `None` if no ticket was issued in the lane.
    pub(super) fn with<T>(&mut self, lane: Lane, step: impl FnOnce(&mut Line) -> T) -> Option<T> {
        if lane.is_standard() {
            return Some(step(&mut self.standard));
        }
        let line = self.lanes.get_mut(&lane)?;
        mem::swap(&mut line.shared, &mut self.standard.shared);
        let outcome = step(line);
        mem::swap(&mut line.shared, &mut self.standard.shared);
        Some(outcome)
    }

    /// Creates the line of a lane of the policy that has none. If the store lost data, the lane may have had a
    /// line: as in the standard lane, numbers up to the base are reclaimed.
    pub(super) fn begin(&mut self, lane: Lane, run_id: u64, now: Millis) {
        if self.has_lane(lane) && !lane.is_standard() && !self.lanes.contains_key(&lane) {
            // A placeholder until a step runs on the line.
            let shared = self.shared().clone();
            let mut line = Line::new(shared, lane, run_id, now);
            line.inherit_loss(&self.standard, now);
            self.lanes.insert(lane, line);
        }
    }

    /// Adds the line of a lane that has none.
    pub(super) fn insert(&mut self, line: Line) {
        self.lanes.insert(line.lane, line);
    }

    /// Returns the settings and where the counters of the lines stand.
    pub(super) fn control(&self) -> ItemControl {
        let ItemState { item, removed, last_update, .. } = self.shared();
        let line = |line: &Line| LineControl {
            lane: line.lane,
            valid_from: line.valid_from,
            tail: line.tail,
            first_waiting: line.waiting.first_number_from(Number(0)),
        };
        ItemControl {
            id: item.id.clone(),
            control_version: item.control_version,
            version: item.version,
            position: *last_update,
            lines: self.all().map(line).collect(),
            item: (!removed).then(|| item.clone()),
        }
    }

    /// Records which of these users hold a live ticket in another lane, for a step on this one.
    pub(super) fn find_live_elsewhere<'a>(
        &mut self,
        lane: Lane,
        users: impl Iterator<Item = &'a UserId>,
    ) {
        let others: Vec<_> = self.all().filter(|line| line.lane != lane).collect();
        let is_live = |user: &&UserId| others.iter().any(|line| line.has_live_ticket(user));
        let found = users.filter(is_live).cloned().collect();
        self.standard.shared.live_elsewhere = found;
    }

    /// Returns the counts of all lanes that the rules of the line depend on.
    pub(super) fn occupancy(&self, now: Millis) -> Occupancy {
        let add = |sum: Occupancy, line: &Line| {
            let lane = line.occupancy(now);
            Occupancy {
                queued: sum.queued + lane.queued,
                missed: sum.missed + lane.missed,
                used_slots: sum.used_slots + lane.used_slots,
                ..sum
            }
        };
        let direct_admissions = self.shared().direct_admissions;
        self.all().fold(Occupancy { direct_admissions, ..Occupancy::default() }, add)
    }

    /// Counts the tickets in the lines of all lanes, those that missed their turn included.
    pub(super) fn in_line(&self) -> u64 {
        self.all().map(Line::in_line).sum()
    }

    /// Counts the tickets issued in all lanes.
    pub(super) fn joined(&self) -> u64 {
        self.all().map(|line| line.totals.joined).sum()
    }

    /// Returns whether the item needs the leader.
    pub(super) fn is_active(&self) -> bool {
        let shared = self.shared();
        self.all().any(Line::has_tickets)
            || shared.direct_admissions > 0
            || (!shared.removed && shared.item.has_opening_ahead())
    }

    /// Returns whether a lane has a ticket in the line or an entry.
    pub(super) fn has_live_tickets(&self, lane: Lane) -> bool {
        let line = self.lanes.get(&lane);
        line.is_some_and(|line| line.in_line() + line.entered.len() > 0)
    }

    /// Ends the lines of all lanes; see [`Line::restart`].
    pub(super) fn restart(&mut self) {
        self.standard.restart();
        for index in 1.. {
            let Some(lane) = Lane::numbered(index) else { return };
            self.with(lane, Line::restart);
        }
    }

    /// Returns the counts of the item, in total and by lane.
    pub(super) fn counts(&self) -> LineCounts {
        let mut counts = self.standard.counts();
        let lanes = self.lanes();
        let lane_counts = |lane: Lane| match self.lanes.get(&lane) {
            _ if lane.is_standard() => self.standard.lane_counts(),
            Some(line) => line.lane_counts(),
            None => LaneCounts::default(),
        };
        counts.set_lanes(lanes.map(lane_counts).collect());
        counts
    }

    fn all(&self) -> impl Iterator<Item = &Line> {
        std::iter::once(&self.standard).chain(self.lanes.values())
    }
}
