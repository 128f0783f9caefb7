//! Visitors of a line: the counts that pods write, as shares and percentiles.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use daegi_domain::history::{HOUR_MS, MINUTE_MS};
use daegi_domain::visit::{
    Dimension, PAGE_LOAD_LIMITS_MS, TIME_TO_LEAVE_LIMITS_SECONDS, Total, VISIT_MINUTES_MS,
};
use daegi_domain::{ItemId, Millis, VisitCounts, VisitStep, rfc3339};
use daegi_runtime::http::{PathParams, QueryParams};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::period::{Period, PeriodQuery};
use super::{AdminError, AdminResult, AdminState, store_call};

const MINUTES_PER_HOUR: u64 = HOUR_MS / MINUTE_MS;

/// The visitors of a line in a period.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = json!({
    "itemId": "concert",
    "stepMinutes": 1,
    "visits": 200,
    "pageViews": 260,
    "reconnects": 14,
    "leaves": 3,
    "device": [{ "name": "phone", "count": 150, "share": 0.75 }, { "name": "desktop", "count": 50, "share": 0.25 }],
    "browser": [{ "name": "chrome", "count": 200, "share": 1.0 }],
    "access": [{ "name": "page", "count": 200, "share": 1.0 }],
    "country": [{ "name": "KR", "count": 200, "share": 1.0 }],
    "language": [{ "name": "ko", "count": 200, "share": 1.0 }],
    "pageLoadMs": { "count": 200, "p50": 420, "p75": 610, "p95": 1300 },
    "timeToLeaveSeconds": { "count": 3, "p50": 45, "p75": 60, "p95": 170 },
    "steps": [{ "at": "2026-11-20T19:30:00.000Z", "visits": 200, "pageViews": 260 }],
}))]
pub(super) struct Visitors {
    item_id: String,
    /// 1 if the period began at most 48 h ago, otherwise 60.
    step_minutes: u64,
    /// New tickets.
    visits: u64,
    /// Waiting pages that were served.
    page_views: u64,
    /// Joins of users who had a ticket, and streams that continued after an interruption.
    reconnects: u64,
    /// Tickets that their users gave up.
    leaves: u64,
    /// Classes of devices, the largest share first.
    device: Vec<Share>,
    browser: Vec<Share>,
    /// How users came: `page`, `form` (the page without scripts), `sdk` or `api`.
    access: Vec<Share>,
    /// ISO 3166 alpha-2, `unknown`, or `other`; empty without `DAEGI_COUNTRY_HEADER`.
    country: Vec<Share>,
    /// ISO 639-1, `unknown`, or `other`.
    language: Vec<Share>,
    page_load_ms: Percentiles,
    time_to_leave_seconds: Percentiles,
    /// Steps with visits or page views, oldest first.
    steps: Vec<VisitorStep>,
    #[serde(skip)]
    #[schemars(skip)]
    counts: Vec<(Millis, VisitCounts)>,
}

/// Visits with one value.
#[derive(Debug, Serialize, JsonSchema)]
struct Share {
    name: String,
    count: u64,
    /// Of all visits for which the value is counted, from 0 to 1.
    share: f64,
}

/// Percentiles, interpolated within the classes that are counted; null without counts.
#[derive(Debug, Serialize, JsonSchema)]
struct Percentiles {
    count: u64,
    p50: Option<u32>,
    p75: Option<u32>,
    p95: Option<u32>,
}

/// The visits of one step.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct VisitorStep {
    /// When the step begins, as RFC 3339.
    at: String,
    visits: u64,
    page_views: u64,
}

pub(super) async fn show(
    State(admin): State<Arc<AdminState>>,
    PathParams(id): PathParams<ItemId>,
    QueryParams(query): QueryParams<PeriodQuery>,
) -> AdminResult<Response> {
    let now = admin.clock.now_ms();
    let period = query.period(now)?;
    let has_minutes = period.from * MINUTE_MS + VISIT_MINUTES_MS >= now;
    let step = match (query.step, has_minutes) {
        (None | Some(1), true) => VisitStep::Minute,
        (None | Some(MINUTES_PER_HOUR), _) => VisitStep::Hour,
        (Some(1), false) => {
            let detail = "visits are kept by minute for 48 h: give step=60 or a later from";
            return Err(AdminError::Invalid(detail.into()));
        }
        _ => return Err(AdminError::Invalid("step must be 1 or 60 minutes".into())),
    };
    let minutes = if step == VisitStep::Minute { 1 } else { MINUTES_PER_HOUR };
    let Period { from, to } = period;
    let steps = from / minutes..=(to - 1) / minutes;
    let reads =
        async { tokio::try_join!(admin.store.item(&id), admin.store.visits(&id, step, steps)) };
    let (item, counts) = store_call(reads).await?;
    if item.is_none() {
        return Err(AdminError::ItemNotFound(id));
    }
    let at = |(step, counts): (u64, VisitCounts)| (step * minutes * MINUTE_MS, counts);
    let visitors = Visitors::new(&id, minutes, counts.into_iter().map(at).collect());
    Ok(query.format.response((&id, "visitors"), visitors, Visitors::to_csv))
}

impl Visitors {
    fn new(id: &ItemId, step_minutes: u64, counts: Vec<(Millis, VisitCounts)>) -> Self {
        let mut all = VisitCounts::default();
        counts.iter().for_each(|(_, step)| all.merge(step));
        let step = |(at, counts): &(Millis, VisitCounts)| VisitorStep {
            at: rfc3339(*at),
            visits: counts.get(Total::Visits),
            page_views: counts.get(Total::PageViews),
        };
        Self {
            item_id: id.to_string(),
            step_minutes,
            visits: all.get(Total::Visits),
            page_views: all.get(Total::PageViews),
            reconnects: all.get(Total::Reconnects),
            leaves: all.get(Total::Leaves),
            device: shares(&all, Dimension::Device),
            browser: shares(&all, Dimension::Browser),
            access: shares(&all, Dimension::Access),
            country: shares(&all, Dimension::Country),
            language: shares(&all, Dimension::Language),
            page_load_ms: Percentiles::new(&all, Dimension::PageLoad, &PAGE_LOAD_LIMITS_MS),
            time_to_leave_seconds: Percentiles::new(
                &all,
                Dimension::TimeToLeave,
                &TIME_TO_LEAVE_LIMITS_SECONDS,
            ),
            steps: counts.iter().map(step).collect(),
            counts,
        }
    }

    /// Returns one row per step, dimension and value. No value contains a comma or a quote.
    fn to_csv(&self) -> String {
        let mut csv = String::from("at,dimension,value,count\r\n");
        for (at, counts) in &self.counts {
            for (label, count) in counts.iter() {
                let Some(dimension) = label.dimension() else { continue };
                let (at, dimension, value) = (rfc3339(*at), dimension.name(), label.value_name());
                let _ = write!(csv, "{at},{dimension},{value},{count}\r\n");
            }
        }
        csv
    }
}

/// Returns the values of a dimension, the largest share first.
fn shares(counts: &VisitCounts, dimension: Dimension) -> Vec<Share> {
    let mut by_name: BTreeMap<_, u64> = BTreeMap::new();
    for (label, count) in counts.of(dimension) {
        *by_name.entry(label.value_name()).or_default() += count;
    }
    let total: u64 = by_name.values().sum();
    let share = |count: u64| (count as f64 / total as f64 * 10_000.0).round() / 10_000.0;
    let all = by_name.into_iter();
    let mut shares: Vec<_> = all
        .map(|(name, count)| Share { name: name.into_owned(), count, share: share(count) })
        .collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.count));
    shares
}

impl Percentiles {
    fn new(counts: &VisitCounts, dimension: Dimension, limits: &[u32]) -> Self {
        let classes: Vec<_> = counts.of(dimension).collect();
        let count = classes.iter().map(|(_, count)| count).sum::<u64>();
        let percentile = |share: f64| {
            let (rank, mut below) = (share * count as f64, 0.0);
            for (label, count) in &classes {
                let class = usize::from(label.value());
                let lower =
                    class.checked_sub(1).map_or(0, |class| limits[class.min(limits.len() - 1)]);
                // The last class has no limit, so that its percentiles are at least its lower one.
                let upper = limits.get(class).copied().unwrap_or(lower);
                let count = *count as f64;
                if below + count >= rank {
                    let part = (rank - below) / count;
                    return Some(lower + (part * f64::from(upper - lower)).round() as u32);
                }
                below += count;
            }
            None
        };
        Self { count, p50: percentile(0.5), p75: percentile(0.75), p95: percentile(0.95) }
    }
}

#[cfg(test)]
mod tests {
    use daegi_domain::VisitLabel;

    use super::*;

    #[test]
    fn percentiles_are_interpolated_within_their_class() {
        let times = [(80, 50), (400, 25), (900, 20), (90_000, 5)];
        let counts = times.map(|(millis, count)| (VisitLabel::page_load(millis), count));
        let counts: VisitCounts = counts.into_iter().collect();
        let all = Percentiles::new(&counts, Dimension::PageLoad, &PAGE_LOAD_LIMITS_MS);
        assert_eq!(
            (all.count, all.p50, all.p75, all.p95),
            (100, Some(100), Some(500), Some(1_000))
        );
        let slow: VisitCounts = [(VisitLabel::page_load(90_000), 3)].into_iter().collect();
        let slow = Percentiles::new(&slow, Dimension::PageLoad, &PAGE_LOAD_LIMITS_MS);
        assert_eq!((slow.p50, slow.p95), (Some(60_000), Some(60_000)));
        let none = Percentiles::new(&VisitCounts::default(), Dimension::PageLoad, &[1]);
        assert_eq!((none.count, none.p50), (0, None));
    }
}
