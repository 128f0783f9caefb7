//! In which order the tickets of a lane are served: by number, and in a drawn cohort by rank.

use std::collections::{BTreeMap, HashMap};

use super::data_loss::DataLosses;
use super::draw::Cohort;
use crate::History;
use crate::history::{Millis, ObservedOpening, TicketNumber, committed_at};

/// The drawn cohorts of all items.
#[derive(Debug)]
pub(super) struct ServingOrder<'a> {
    /// By item and era.
    cohorts: HashMap<&'a str, BTreeMap<usize, Cohort>>,
    losses: &'a DataLosses,
}

impl<'a> ServingOrder<'a> {
    /// Reads the order from the events of openings. In a later era it is the same if a pod returned the draw in that
    /// era, or if the loss between was not total.
    ///
    /// Until daegi restores openings after a total loss, such a line continues by number. Then this function can take
    /// the latest opening for all later eras, and a draw that a pod does not return any more is a violation.
    pub(super) fn from_history(history: &'a History, losses: &'a DataLosses) -> Self {
        let mut cohorts: HashMap<&str, BTreeMap<usize, Cohort>> = HashMap::new();
        for opening in &history.openings {
            let cohort = opening.draw.as_ref().and_then(Cohort::from_record);
            if let Some(cohort) = cohort {
                let era = losses.era(opened_at(opening));
                cohorts.entry(&opening.item).or_default().insert(era, cohort);
            }
        }
        for draw in history.draws.iter().filter(|draw| losses.is_fresh(draw.from)) {
            if let Some(cohort) = draw.record.as_ref().and_then(Cohort::from_record) {
                let eras = cohorts.entry(&draw.item).or_default();
                eras.entry(losses.era(draw.from)).or_insert(cohort);
            }
        }
        Self { cohorts, losses }
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

    /// The cohort in an era.
    fn cohort(&self, item: &str, era: usize) -> Option<&Cohort> {
        let (drawn_in, cohort) = self.cohorts.get(item)?.range(..=era).next_back()?;
        let is_kept = !self.losses.has_total(*drawn_in, era);
        is_kept.then_some(cohort)
    }
}

/// When an opening was committed, by the clock of the store.
pub(super) fn opened_at(opening: &ObservedOpening) -> Millis {
    committed_at(&opening.sequence).unwrap_or(opening.at)
}
