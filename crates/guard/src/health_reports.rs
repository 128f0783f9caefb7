//! Reports about the health of this service, which daegi's adaptive pace follows.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use daegi_domain::ItemId;
use daegi_domain::pace::origin::OriginTotals;
use serde_json::{Value, json};

/// How often a guard reports an item at most.
const INTERVAL: Duration = Duration::from_secs(1);

/// Items with unsent reports at most, because items may come from requests.
const MAX_ITEMS: usize = 1_000;

/// What a guard saw of its service and has not sent yet.
#[derive(Debug)]
pub(crate) struct HealthReports {
    instance: String,
    items: Mutex<HashMap<ItemId, Unsent>>,
}

#[derive(Debug)]
struct Unsent {
    totals: OriginTotals,
    sent_at: Instant,
}

impl HealthReports {
    pub(crate) fn new(instance: String) -> Self {
        Self { instance, items: Mutex::default() }
    }

    /// Counts a response. Returns the report of the item if one is due.
    pub(crate) fn add(&self, item: &ItemId, took: Duration, is_error: bool) -> Option<Value> {
        let mut items = self.items();
        if !items.contains_key(item) && items.len() >= MAX_ITEMS {
            return None;
        }
        let start = || Unsent { totals: OriginTotals::default(), sent_at: Instant::now() };
        let unsent = items.entry(item.clone()).or_insert_with(start);
        unsent.totals.requests += 1;
        unsent.totals.errors += u64::from(is_error);
        unsent.totals.latency.add(took.as_secs_f64() * 1000.0, 1);
        if unsent.sent_at.elapsed() < INTERVAL {
            return None;
        }
        unsent.sent_at = Instant::now();
        Some(self.report(&std::mem::take(&mut unsent.totals)))
    }

    fn report(&self, totals: &OriginTotals) -> Value {
        let bucket = |(up_to, count): (f64, u64)| json!({ "upToMs": up_to as u32, "count": count });
        json!({
            "instance": self.instance,
            "requests": totals.requests,
            "errors": totals.errors,
            "latency": totals.latency.buckets().map(bucket).collect::<Vec<_>>(),
        })
    }

    fn items(&self) -> MutexGuard<'_, HashMap<ItemId, Unsent>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_collected_until_a_report_is_due() {
        let reports = HealthReports::new("shop-1".into());
        let item = ItemId::parse("concert").unwrap();
        assert_eq!(reports.add(&item, Duration::from_millis(90), false), None);
        if let Some(unsent) = reports.items().get_mut(&item) {
            unsent.sent_at -= INTERVAL;
        }
        let report = reports.add(&item, Duration::from_millis(90), true).unwrap();
        assert_eq!((&report["requests"], &report["errors"]), (&json!(2), &json!(1)));
        assert_eq!(report["latency"][0]["count"], 2);
        assert_eq!(reports.add(&item, Duration::from_millis(90), false), None);
    }
}
