use std::collections::HashMap;
use std::ops::RangeInclusive;

use ::redis::FromRedisValue;
use async_trait::async_trait;
use daegi_domain::history::{DAY_MS, HOUR_MS, MINUTE_MS};
use daegi_domain::visit::{MAX_LABELS, VISIT_MINUTES_MS};
use daegi_domain::{ItemId, Millis, VisitCounts, VisitStep};
use futures_util::{StreamExt, TryStreamExt, stream};

use super::client::call_error::with_epoch;
use super::keys::PartitionKeys;
use super::scripts::scripts;
use super::{MAX_CONCURRENT_CALLS, RedisStore};
use crate::types::{Epoch, HourAppend};
use crate::{Error, HistoryStore, Result, partition_of};

const HOURS_PER_DAY: u64 = DAY_MS / HOUR_MS;
const MINUTES_PER_HOUR: u64 = HOUR_MS / MINUTE_MS;

#[async_trait]
impl HistoryStore for RedisStore {
    async fn append_hour(
        &self,
        epoch: Epoch,
        id: &ItemId,
        append: HourAppend<'_>,
        retention: Millis,
    ) -> Result<Option<Vec<u8>>> {
        let HourAppend { hour, length, bytes } = append;
        let mut script = scripts().append_hour.invocation();
        script.key(PartitionKeys::new(partition_of(id, self.partitions)).fence);
        script.key(self.keys(id).minutes(hour / HOURS_PER_DAY));
        script.arg(epoch.0).arg(hour % HOURS_PER_DAY).arg(length).arg(bytes);
        // The key of a day is written during the day, and its last hour is kept for the whole retention.
        script.arg(retention + HOUR_MS);
        self.run(script).await.map_err(|error| with_epoch(epoch, error))
    }

    async fn hours(&self, id: &ItemId, hours: RangeInclusive<u64>) -> Result<Vec<(u64, Vec<u8>)>> {
        self.read_steps(HOURS_PER_DAY, hours, |day| self.keys(id).minutes(day)).await
    }

    async fn add_visits(
        &self,
        id: &ItemId,
        visits: &VisitCounts,
        retention: Millis,
        now: Millis,
    ) -> Result<()> {
        if visits.is_empty() {
            return Ok(());
        }
        let (minute, hour) = (now / MINUTE_MS, now / HOUR_MS);
        let mut script = scripts().add_visits.invocation();
        script.key(self.keys(id).visits_by_minute(hour));
        script.key(self.keys(id).visits_by_hour(hour / HOURS_PER_DAY));
        script.arg(minute % MINUTES_PER_HOUR).arg(hour % HOURS_PER_DAY).arg(MAX_LABELS);
        script.arg(VISIT_MINUTES_MS).arg(retention);
        visits.iter().for_each(|(label, count)| {
            script.arg(&label.to_bytes()[..]).arg(count);
        });
        self.run(script).await
    }

    async fn visits(
        &self,
        id: &ItemId,
        step: VisitStep,
        steps: RangeInclusive<u64>,
    ) -> Result<Vec<(u64, VisitCounts)>> {
        let stored: Vec<(u64, Vec<u8>)> = match step {
            VisitStep::Minute => {
                let key = |hour| self.keys(id).visits_by_minute(hour);
                self.read_steps(MINUTES_PER_HOUR, steps, key).await?
            }
            VisitStep::Hour => {
                let key = |day| self.keys(id).visits_by_hour(day);
                self.read_steps(HOURS_PER_DAY, steps, key).await?
            }
        };
        let parse = |(step, stored): (u64, Vec<u8>)| {
            let counts = VisitCounts::parse(&stored);
            Ok((step, counts.ok_or_else(|| Error::corrupt(format!("visits of {id}")))?))
        };
        stored.into_iter().map(parse).collect()
    }
}

impl RedisStore {
    /// Reads hashes of `per_key` steps each, whose fields are the steps of a key from 0 on.
    async fn read_steps<T: FromRedisValue + Send>(
        &self,
        per_key: u64,
        steps: RangeInclusive<u64>,
        key: impl Fn(u64) -> String,
    ) -> Result<Vec<(u64, T)>> {
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let keys = steps.start() / per_key..=steps.end() / per_key;
        let keys: Vec<_> = keys.map(|nth| (nth, key(nth))).collect();
        let read = |(nth, key): (u64, String)| async move {
            let mut read = ::redis::cmd("HGETALL");
            let stored: HashMap<u64, T> = self.command(read.arg(key)).await?;
            Ok::<_, Error>((nth, stored))
        };
        let reads = stream::iter(keys.into_iter().map(read)).buffered(MAX_CONCURRENT_CALLS);
        let mut all = Vec::new();
        for (nth, stored) in reads.try_collect::<Vec<_>>().await? {
            let values = stored.into_iter().map(|(field, value)| (nth * per_key + field, value));
            all.extend(values.filter(|(step, _)| steps.contains(step)));
        }
        all.sort_unstable_by_key(|(step, _)| *step);
        Ok(all)
    }
}
