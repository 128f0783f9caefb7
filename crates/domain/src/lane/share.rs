//! How lanes share the admissions of a round: stride scheduling over weights.
//!
//! Each lane has a `lead`: how far its service is ahead of the other lanes', in units that are worth
//! `STRIDE / weight` per admission. The lane with the lowest lead is served next. Leads are kept between rounds,
//! so that the shares hold over time and not only within one round. A lane without tickets keeps its lead until
//! the others have caught up, so that it gains nothing by being empty.

use crate::{LanePolicy, lane};

/// What one admission adds to the lead of a lane with weight 1.
pub const STRIDE: u64 = 1_000_000;

/// One lane as a plan sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneDemand {
    /// How it shares the rate.
    pub share: LaneShare,
    /// How many of its tickets may be admitted.
    pub admissible: u64,
    /// How far its service is ahead.
    pub lead: u64,
}

/// How a lane shares the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneShare {
    /// Served before all lanes with a weight.
    First,
    /// Served by weight.
    Weight(u32),
}

/// Returns the shares of all lanes, the standard lane first.
#[must_use]
pub fn shares(lanes: &[LanePolicy]) -> Vec<LaneShare> {
    let standard = LaneShare::Weight(lane::standard_weight(lanes));
    let share = |lane: &LanePolicy| match lane.first {
        true => LaneShare::First,
        false => LaneShare::Weight(lane.weight),
    };
    std::iter::once(standard).chain(lanes.iter().map(share)).collect()
}

/// Returns how many tickets of each lane are served next, `budget` in total at most: all of the lanes with
/// [`LaneShare::First`] in their order, then one by one of the lane with the lowest lead, the first one of equals.
#[must_use]
pub fn plan(lanes: &[LaneDemand], budget: u64) -> Vec<u64> {
    let mut left = budget;
    let mut planned: Vec<u64> = lanes.iter().map(|_| 0).collect();
    for (lane, planned) in lanes.iter().zip(&mut planned) {
        if lane.share == LaneShare::First {
            *planned = lane.admissible.min(left);
            left -= *planned;
        }
    }
    while left > 0 {
        let lead = |index: usize, lane: &LaneDemand| match lane.share {
            LaneShare::Weight(_) if planned[index] < lane.admissible => {
                Some(lane.lead + planned[index] * lane.share.stride())
            }
            _ => None,
        };
        let next = lanes.iter().enumerate().filter_map(|(i, lane)| Some((lead(i, lane)?, i))).min();
        let Some((_, index)) = next else { break };
        planned[index] += 1;
        left -= 1;
    }
    planned
}

/// Returns the leads after `admitted` tickets of each lane were served. They are relative to the lowest lead
/// among lanes that had tickets.
#[must_use]
pub fn leads_after(lanes: &[LaneDemand], admitted: &[u64]) -> Vec<u64> {
    let weighted = |lane: &LaneDemand| lane.share != LaneShare::First;
    let lead = |lane: &LaneDemand, admitted: u64| lane.lead + admitted * lane.share.stride();
    let served = || lanes.iter().zip(admitted.iter().copied());
    let lowest = served()
        .filter(|(lane, _)| weighted(lane) && lane.admissible > 0)
        .map(|(lane, admitted)| lead(lane, admitted))
        .min();
    served()
        .map(|(lane, admitted)| lead(lane, admitted).saturating_sub(lowest.unwrap_or(0)))
        .collect()
}

impl LaneShare {
    /// Returns what one admission adds to the lead.
    fn stride(self) -> u64 {
        match self {
            Self::First => 0,
            Self::Weight(weight) => STRIDE / u64::from(weight.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(lanes: &[(u32, u64)], leads: &[u64]) -> Vec<LaneDemand> {
        let demand = |(&(weight, admissible), &lead): (&(u32, u64), &u64)| {
            let share = if weight == 0 { LaneShare::First } else { LaneShare::Weight(weight) };
            LaneDemand { share, admissible, lead }
        };
        lanes.iter().zip(leads).map(demand).collect()
    }

    /// Serves rounds of these budgets and returns how many tickets of each lane were served.
    fn served(lanes: &[(u32, u64)], budgets: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut leads = vec![0; lanes.len()];
        let mut total = vec![0; lanes.len()];
        for budget in budgets {
            let lanes = demands(lanes, &leads);
            let planned = plan(&lanes, budget);
            leads = leads_after(&lanes, &planned);
            total.iter_mut().zip(&planned).for_each(|(total, planned)| *total += planned);
        }
        total
    }

    #[test]
    fn shares_hold_over_rounds_of_any_size() {
        let lanes = [(70, u64::MAX), (20, u64::MAX), (10, u64::MAX)];
        assert_eq!(served(&lanes, std::iter::repeat_n(100, 100)), [7_000, 2_000, 1_000]);
        for (size, rounds) in [(1, 10_000), (3, 3_333), (7, 1_429)] {
            let total = served(&lanes, std::iter::repeat_n(size, rounds));
            for (served, percent) in total.iter().zip([70, 20, 10]) {
                let expected = percent * size * rounds as u64 / 100;
                assert!(served.abs_diff(expected) <= expected / 100 + 1, "{size}: {total:?}");
            }
        }
    }

    #[test]
    fn a_lane_without_tickets_leaves_its_share_to_the_others() {
        assert_eq!(served(&[(70, 0), (20, u64::MAX), (10, u64::MAX)], [30]), [0, 20, 10]);
        assert_eq!(served(&[(70, 0), (30, 5)], [30]), [0, 5]);
        assert_eq!(served(&[(70, 0), (30, 0)], [30]), [0, 0]);
    }

    #[test]
    fn lanes_that_are_first_are_served_before_all_others() {
        assert_eq!(served(&[(100, 50), (0, 3), (0, 4)], [5]), [0, 3, 2]);
        assert_eq!(served(&[(100, 50), (0, 3), (0, 4)], [10]), [3, 3, 4]);
    }

    #[test]
    fn a_lane_that_is_often_empty_does_not_exceed_its_share() {
        let (mut leads, mut lane_served, mut waits) = (vec![0, 0], 0, 0);
        for round in 0..2000 {
            // A new ticket joins the small lane only while it is empty.
            waits = waits.max(round % 2);
            let lanes = demands(&[(99, u64::MAX), (1, waits)], &leads);
            let planned = plan(&lanes, 1);
            leads = leads_after(&lanes, &planned);
            waits -= planned[1];
            lane_served += planned[1];
        }
        assert!((19..=21).contains(&lane_served), "{lane_served} of 2000 for 1 percent");
    }

    #[test]
    fn no_lane_starves() {
        let total = served(&[(98, u64::MAX), (1, u64::MAX), (1, u64::MAX)], [100]);
        assert_eq!(total, [98, 1, 1]);
    }
}
