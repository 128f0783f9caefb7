//! In which order the tickets of a lane are served: by number, and in a drawn cohort by rank.

use std::collections::{BTreeMap, HashMap};

use super::data_loss::DataLosses;
use super::draw::Cohort;
use crate::History;
use crate::history::{Millis, ObservedOpening, TicketNumber, committed_at};

/// The drawn cohorts of all items, by the era of their opening. A data loss does not change the order.
#[derive(Debug, Default)]
pub(super) struct ServingOrder<'a>(HashMap<&'a str, BTreeMap<usize, Cohort>>);

impl<'a> ServingOrder<'a> {
    pub(super) fn from_history(history: &'a History, losses: &DataLosses) -> Self {
        let mut cohorts: HashMap<&str, BTreeMap<usize, Cohort>> = HashMap::new();
        for opening in &history.openings {
            if let Some(cohort) = opening.draw.as_ref().and_then(Cohort::from_record) {
                let era = losses.era(opened_at(opening));
                cohorts.entry(&opening.item).or_default().insert(era, cohort);
            }
        }
        Self(cohorts)
    }

    /// The place of a number in the order of its lane.
    pub(super) fn rank(&self, item: &str, number: TicketNumber, era: usize) -> u64 {
        let cohort = self.cohort(item, era).filter(|_| number.lane == 0);
        cohort.map_or(number.number, |cohort| cohort.rank(number))
    }

    /// The place of a number in its cohort, from 1.
    pub(super) fn cohort_rank(&self, item: &str, number: TicketNumber, era: usize) -> Option<u64> {
        self.cohort(item, era)?.place(number)
    }

    fn cohort(&self, item: &str, era: usize) -> Option<&Cohort> {
        self.0.get(item)?.range(..=era).next_back().map(|(_, cohort)| cohort)
    }
}

/// When an opening was committed, by the clock of the store.
pub(super) fn opened_at(opening: &ObservedOpening) -> Millis {
    committed_at(&opening.sequence).unwrap_or(opening.at)
}
