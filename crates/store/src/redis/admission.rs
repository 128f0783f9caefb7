use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};

use async_trait::async_trait;
use daegi_domain::draw::Cohort;
use daegi_domain::{ItemId, Lane, Millis, Number, Rank};

use super::client::call_error::with_epoch;
use super::keys::PartitionKeys;
use super::reply::AdmitReply;
use super::{RedisStore, WindowKind, reply};
use crate::limits::MAX_USERS_PER_CALL;
use crate::types::{Admission, Epoch, Expiry, Sweep};
use crate::{AdmissionStore, Result};

/// How many ranks of a drawn cohort one call passes: departed ones are skipped, so more than it may admit.
const RANKS_PER_CALL: u64 = 2 * MAX_USERS_PER_CALL as u64;

/// How far a drawn cohort was served, as this process last read it. The script checks it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CohortPosition {
    cohort: Cohort,
    served_ranks: u64,
}

impl CohortPosition {
    fn is_unserved(&self) -> bool {
        self.served_ranks < self.cohort.size()
    }

    /// Returns the numbers of the ranks that come next.
    fn next_numbers(self) -> impl Iterator<Item = Number> {
        let first = self.cohort.first().0;
        let end = self.cohort.size().min(self.served_ranks + RANKS_PER_CALL);
        (self.served_ranks..end).map(move |rank| self.cohort.number(Rank(first + rank)))
    }
}

#[async_trait]
impl AdmissionStore for RedisStore {
    async fn begin_term(&self, now: Millis) -> Result<Epoch> {
        self.new_epoch(now).await
    }

    async fn active_lines_in(&self, partition: u16) -> Result<Vec<ItemId>> {
        self.members_of(&PartitionKeys::new(partition).active).await
    }

    async fn admit(
        &self,
        epoch: Epoch,
        id: &ItemId,
        quota: u32,
        min_interval: Millis,
        outbox_max: u64,
        now: Millis,
    ) -> Result<Admission> {
        let mut total = Admission { remaining: quota, ..Admission::default() };
        loop {
            let (known, lanes) = (self.cohort_position(id), self.known_lanes(id));
            let call = |first_slice: u64| {
                let mut script =
                    self.lanes_script(id, Lane::STANDARD, lanes, |scripts| &scripts.admit);
                script.arg(epoch.0).arg(total.remaining).arg(outbox_max).arg(now);
                script.arg(MAX_USERS_PER_CALL - total.admitted - total.missed);
                script.arg(first_slice).arg(min_interval);
                script
                    .arg(known.map_or_else(String::new, |known| hex::encode(known.cohort.seed())));
                script.arg(known.map_or(0, |known| known.served_ranks));
                known.into_iter().flat_map(CohortPosition::next_numbers).for_each(|number| {
                    script.arg(number.0);
                });
                script
            };
            let reply =
                self.with_liveness_window(id, WindowKind::Admit, now, call, reply::admission).await;
            match reply.map_err(|error| with_epoch(epoch, error))? {
                AdmitReply::OtherLanes(lanes) => self.keep_lanes(id, lanes),
                AdmitReply::OtherRanks { cohort, served_ranks } => {
                    self.keep_cohort_position(id, Some(CohortPosition { cohort, served_ranks }));
                }
                AdmitReply::Done { admission, served_ranks, needs_ranks } => {
                    let served = known.map(|known| CohortPosition { served_ranks, ..known });
                    self.keep_cohort_position(id, served.filter(CohortPosition::is_unserved));
                    total.add(admission);
                    if !needs_ranks {
                        return Ok(total);
                    }
                }
            }
        }
    }

    async fn expire(&self, epoch: Epoch, id: &ItemId, lane: Lane, now: Millis) -> Result<Expiry> {
        let lanes = if lane.is_standard() { self.known_lanes(id) } else { 0 };
        let mut script = self.lanes_script(id, lane, lanes, |scripts| &scripts.expire);
        script
            .arg(epoch.0)
            .arg(now)
            .arg(MAX_USERS_PER_CALL)
            .arg(id.as_str())
            .arg(self.recovery_hold);
        let expiry = self.run(script).await.map(reply::expiry);
        let expiry = expiry.map_err(|error| with_epoch(epoch, error))?;
        self.keep_lanes(id, expiry.lanes);
        Ok(expiry)
    }

    async fn sweep(
        &self,
        epoch: Epoch,
        id: &ItemId,
        lane: Lane,
        cursor: Number,
        now: Millis,
    ) -> Result<Sweep> {
        let call = |first_slice: u64| {
            let mut script = self.line_script(id, lane, |scripts| &scripts.sweep);
            script.arg(epoch.0).arg(now).arg(cursor.0).arg(MAX_USERS_PER_CALL).arg(first_slice);
            script
        };
        let swept = self.with_liveness_window(id, WindowKind::Sweep, now, call, reply::sweep).await;
        swept.map_err(|error| with_epoch(epoch, error))
    }
}

impl RedisStore {
    fn cohort_position(&self, id: &ItemId) -> Option<CohortPosition> {
        self.cohorts().get(id).copied()
    }

    fn keep_cohort_position(&self, id: &ItemId, position: Option<CohortPosition>) {
        match position {
            Some(position) => self.cohorts().insert(id.clone(), position),
            None => self.cohorts().remove(id),
        };
    }

    fn cohorts(&self) -> MutexGuard<'_, HashMap<ItemId, CohortPosition>> {
        self.cohorts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
