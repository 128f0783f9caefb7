//! What guards and gateways report of the origins of lines, added up by this pod and flushed to the store.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daegi_domain::pace::origin::{OriginReport, OriginTotals};
use daegi_domain::{ItemId, Lane, Millis};
use daegi_runtime::Clock;
use daegi_store::PaceStore;
use metrics::counter;

use super::TicketService;
use crate::error::{Error, Result};
use crate::lines::LineKey;
use crate::metrics::ORIGIN_REPORTS;
use crate::wire::{OriginHealth, OriginLatency};

/// How often a pod flushes: the leader is not faster.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// How long an instance counts after its last report.
const INSTANCE_RETENTION_MS: Millis = 60_000;

/// Instances that may report for one item to one pod within [`INSTANCE_RETENTION_MS`].
const MAX_INSTANCES: usize = 256;

/// Items whose reports a pod keeps. The internal listener is not open to clients, so that there are no more than
/// guarded items.
const MAX_ITEMS: usize = 1_000;

/// The reports of one pod.
#[derive(Debug)]
pub(crate) struct OriginReports {
    /// The name of this pod: random, because totals begin with the process.
    pod: String,
    items: Mutex<HashMap<ItemId, ReportedItem>>,
}

#[derive(Debug, Default)]
struct ReportedItem {
    totals: OriginTotals,
    /// When each instance reported last.
    instances: BTreeMap<String, Millis>,
    is_changed: bool,
}

impl OriginReports {
    pub(crate) fn new() -> Self {
        Self { pod: format!("{:016x}", fastrand::u64(..)), items: Mutex::default() }
    }

    /// Adds a report. Returns false if too many instances or items have one.
    fn add(&self, item: &ItemId, instance: &str, added: &OriginTotals, now: Millis) -> bool {
        let mut items = self.items();
        if !items.contains_key(item) && items.len() >= MAX_ITEMS {
            return false;
        }
        let reported = items.entry(item.clone()).or_default();
        reported.instances.retain(|_, at| now.saturating_sub(*at) < INSTANCE_RETENTION_MS);
        let is_known = reported.instances.contains_key(instance);
        if !is_known && reported.instances.len() >= MAX_INSTANCES {
            return false;
        }
        reported.instances.insert(instance.to_owned(), now);
        reported.totals = reported.totals.plus(added);
        reported.is_changed = true;
        true
    }

    /// Flushes every [`FLUSH_INTERVAL`]. Never returns. A flush that fails is part of the next one, because totals
    /// only grow.
    pub(crate) async fn run(self: Arc<Self>, store: Arc<dyn PaceStore>, clock: Clock) {
        loop {
            tokio::time::sleep(FLUSH_INTERVAL).await;
            self.flush(&*store, clock.now_ms()).await;
        }
    }

    async fn flush(&self, store: &dyn PaceStore, now: Millis) {
        for (item, report) in self.changed(now) {
            let outcome = match store.put_origin_report(&item, &report, now).await {
                Ok(true) => continue,
                Ok(false) => "too many pods report".to_owned(),
                Err(error) => error.to_string(),
            };
            let component = "origin reports";
            tracing::debug!(component, item.id = %item, error = outcome, "origin report not stored, retrying");
            if let Some(reported) = self.items().get_mut(&item) {
                reported.is_changed = true;
            }
        }
    }

    /// Returns what changed since the last flush, and forgets items without recent reports.
    fn changed(&self, now: Millis) -> Vec<(ItemId, OriginReport)> {
        let mut items = self.items();
        let is_recent = |at: &Millis| now.saturating_sub(*at) < 10 * INSTANCE_RETENTION_MS;
        items.retain(|_, item| item.is_changed || item.instances.values().any(is_recent));
        let mut changed = Vec::new();
        for (id, item) in items.iter_mut() {
            if std::mem::take(&mut item.is_changed) {
                let instances = u32::try_from(item.instances.len()).unwrap_or(u32::MAX);
                let (pod, totals) = (self.pod.clone(), item.totals.clone());
                changed.push((id.clone(), OriginReport { pod, instances, at: now, totals }));
            }
        }
        changed
    }

    fn items(&self) -> MutexGuard<'_, HashMap<ItemId, ReportedItem>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TicketService {
    /// Adds a report of a guard or gateway about the origin of an item.
    pub(crate) async fn report_origin(&self, item: ItemId, report: OriginHealth) -> Result<()> {
        let totals = totals(&report)?;
        // Refuses items that do not exist, so that a wrong configuration shows.
        self.lines.summary(&LineKey { item: item.clone(), lane: Lane::STANDARD }).await?;
        let is_added =
            self.origin_reports.add(&item, &report.instance, &totals, self.clock.now_ms());
        let result = if is_added { "added" } else { "refused" };
        counter!(ORIGIN_REPORTS, "result" => result).increment(1);
        match is_added {
            true => Ok(()),
            false => Err(Error::TooOften { what: "reporting instances", wait: RETRY }),
        }
    }
}

/// When an instance beyond the limit may try again.
const RETRY: Duration = Duration::from_secs(60);

/// Checks a report and returns what it adds.
fn totals(report: &OriginHealth) -> Result<OriginTotals> {
    let OriginHealth { instance, requests, errors, latency, p95_ms } = report;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    if !(1..=64).contains(&instance.len()) || !instance.chars().all(is_name) {
        return Err(Error::invalid("instance must be 1 to 64 letters, digits or . _ : -"));
    }
    if *requests > OriginHealth::MAX_REQUESTS || errors > requests {
        return Err(Error::invalid(
            "requests must be at most 10000000, and errors at most requests",
        ));
    }
    if latency.len() > OriginHealth::MAX_BUCKETS || (!latency.is_empty() && p95_ms.is_some()) {
        return Err(Error::invalid("latency has at most 64 buckets, and takes the place of p95Ms"));
    }
    let mut totals = OriginTotals { requests: *requests, errors: *errors, ..Default::default() };
    match p95_ms {
        // Without a histogram every request counts with the percentile, which is exact for one reporter and too
        // high for the sum of several.
        Some(p95) => totals.latency.add(f64::from(*p95), *requests),
        None => latency.iter().for_each(|OriginLatency { up_to_ms, count }| {
            totals.latency.add(f64::from(*up_to_ms), *count);
        }),
    }
    if totals.latency.count() > *requests {
        return Err(Error::invalid("the counts of latency add up to more than requests"));
    }
    Ok(totals)
}

#[cfg(test)]
mod tests {
    use daegi_store::MemoryStore;

    use super::*;

    fn added(requests: u64) -> OriginTotals {
        OriginTotals { requests, ..OriginTotals::default() }
    }

    #[tokio::test]
    async fn totals_grow_and_only_changes_are_flushed() {
        let settings = daegi_domain::Settings { token_count_to_move: 1, tick_ms: 1000 };
        let (store, reports) = (MemoryStore::new(1, settings), OriginReports::new());
        let item = ItemId::parse("concert").unwrap();
        assert!(reports.add(&item, "shop-1", &added(3), 1_000));
        assert!(reports.add(&item, "shop-2", &added(4), 1_000));
        reports.flush(&store, 2_000).await;
        assert_eq!(reports.changed(2_500), []);
        assert!(reports.add(&item, "shop-1", &added(5), 3_000));
        reports.flush(&store, 3_000).await;
        let stored = store.origin_reports(&item, 3_000).await.unwrap();
        let [report] = stored.as_slice() else { panic!("one pod: {stored:?}") };
        assert_eq!((report.totals.requests, report.instances, report.at), (12, 2, 3_000));
    }

    #[test]
    fn instances_are_bounded_and_forgotten() {
        let (reports, item) = (OriginReports::new(), ItemId::parse("concert").unwrap());
        for n in 0..MAX_INSTANCES {
            assert!(reports.add(&item, &format!("shop-{n}"), &added(1), 1_000));
        }
        assert!(!reports.add(&item, "one-more", &added(1), 1_000));
        assert!(reports.add(&item, "shop-0", &added(1), 1_000));
        assert!(reports.add(&item, "one-more", &added(1), 1_000 + INSTANCE_RETENTION_MS));
    }
}
