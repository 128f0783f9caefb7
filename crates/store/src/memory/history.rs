use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use async_trait::async_trait;
use daegi_domain::history::{HOUR_MS, MINUTE_MS};
use daegi_domain::visit::VISIT_MINUTES_MS;
use daegi_domain::{ItemId, Millis, VisitCounts, VisitStep};

use super::{MemoryStore, rules};
use crate::types::{Epoch, HourAppend};
use crate::{HistoryStore, Result};

/// The history of all lines. Keys are an item and a time in steps since 1970.
#[derive(Debug, Clone, Default)]
pub(super) struct LineHistories {
    pub(super) hours: Steps<Vec<u8>>,
    pub(super) visits_by_minute: Steps<VisitCounts>,
    pub(super) visits_by_hour: Steps<VisitCounts>,
}

/// Values of items by step.
#[derive(Debug, Clone)]
pub(super) struct Steps<T>(BTreeMap<(ItemId, u64), T>);

impl<T: Clone + Default> Steps<T> {
    pub(super) fn get(&self, id: &ItemId, step: u64) -> Option<&T> {
        self.0.get(&(id.clone(), step))
    }

    /// Returns the value of a step to change it. A new step deletes those before `oldest`.
    pub(super) fn entry(&mut self, id: &ItemId, step: u64, oldest: u64) -> &mut T {
        if self.get(id, step).is_none() {
            self.0.retain(|(_, step), _| *step >= oldest);
        }
        self.0.entry((id.clone(), step)).or_default()
    }

    fn range(&self, id: &ItemId, steps: RangeInclusive<u64>) -> Vec<(u64, T)> {
        if steps.is_empty() {
            return Vec::new();
        }
        let keys = (id.clone(), *steps.start())..=(id.clone(), *steps.end());
        self.0.range(keys).map(|((_, step), value)| (*step, value.clone())).collect()
    }
}

impl<T> Default for Steps<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

#[async_trait]
impl HistoryStore for MemoryStore {
    async fn append_hour(
        &self,
        epoch: Epoch,
        id: &ItemId,
        append: HourAppend<'_>,
        retention: Millis,
    ) -> Result<Option<Vec<u8>>> {
        let mut state = self.state();
        state.check_epoch(epoch)?;
        Ok(rules::append_hour::append_hour(&mut state.histories, id, append, retention))
    }

    async fn hours(&self, id: &ItemId, hours: RangeInclusive<u64>) -> Result<Vec<(u64, Vec<u8>)>> {
        Ok(self.state().histories.hours.range(id, hours))
    }

    async fn add_visits(
        &self,
        id: &ItemId,
        visits: &VisitCounts,
        retention: Millis,
        now: Millis,
    ) -> Result<()> {
        let histories = &mut self.state().histories;
        let (minute, hour) = (now / MINUTE_MS, now / HOUR_MS);
        let oldest = now.saturating_sub(VISIT_MINUTES_MS) / MINUTE_MS;
        let by_minute = histories.visits_by_minute.entry(id, minute, oldest);
        rules::add_visits::add_visits(by_minute, visits);
        let oldest = now.saturating_sub(retention) / HOUR_MS;
        rules::add_visits::add_visits(histories.visits_by_hour.entry(id, hour, oldest), visits);
        Ok(())
    }

    async fn visits(
        &self,
        id: &ItemId,
        step: VisitStep,
        steps: RangeInclusive<u64>,
    ) -> Result<Vec<(u64, VisitCounts)>> {
        let histories = &self.state().histories;
        Ok(match step {
            VisitStep::Minute => histories.visits_by_minute.range(id, steps),
            VisitStep::Hour => histories.visits_by_hour.range(id, steps),
        })
    }
}
