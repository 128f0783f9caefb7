//! In which order the tickets of a lane are served: by number, and in a drawn cohort by rank.

use std::collections::{BTreeMap, HashMap};

use super::data_loss::DataLosses;
use super::draw::Cohort;
use crate::History;
use crate::history::{DrawRecord, Millis, ObservedOpening, Setup, TicketNumber, committed_at};

/// The drawn cohorts of all items, by the era of their opening. A data loss does not change the order.
#[derive(Debug, Default)]
pub(super) struct ServingOrder<'a>(HashMap<&'a str, BTreeMap<usize, Cohort>>);

impl<'a> ServingOrder<'a> {
    pub(super) fn from_openings(openings: &'a [ObservedOpening], losses: &DataLosses) -> Self {
        let mut cohorts: HashMap<&str, BTreeMap<usize, Cohort>> = HashMap::new();
        for opening in openings {
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

/// The openings in commit order. If a data loss may have removed the event of a draw from the outbox, the first record that
/// a pod returned stands for it.
pub(super) fn openings(
    setup: &Setup,
    history: &History,
    losses: &DataLosses,
) -> Vec<ObservedOpening> {
    let mut openings = history.openings.clone();
    for (item, planned) in
        setup.items.iter().filter_map(|item| Some((item, item.opening.as_ref()?)))
    {
        let is_drawn = |record: &&DrawRecord| record.seed.is_some();
        let draws = history.draws.iter().filter(|draw| draw.item == item.item);
        let drawn =
            draws.filter_map(|draw| Some((draw.to, draw.record.as_ref().filter(is_drawn)?)));
        let Some((received_at, record)) = drawn.min_by_key(|(at, _)| *at) else { continue };
        let is_published = openings.iter().any(|opening| opening.item == item.item);
        if !is_published && losses.may_lose_opening(planned.opens_at, received_at) {
            openings.push(ObservedOpening {
                id: "lost".to_owned(),
                item: item.item.clone(),
                at: planned.opens_at,
                draw: Some(record.clone()),
                epoch: None,
                sequence: format!("{:016}", planned.opens_at),
                received_at,
            });
        }
    }
    openings.sort_by(|one, other| one.sequence.cmp(&other.sequence));
    openings
}

/// When an opening was committed, by the clock of the store.
pub(super) fn opened_at(opening: &ObservedOpening) -> Millis {
    committed_at(&opening.sequence).unwrap_or(opening.at)
}
