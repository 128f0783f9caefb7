//! The gauges of lines. Only the leader sets them, so that sums over the fleet are correct.

use std::collections::{HashMap, HashSet};

use ::metrics::{counter, gauge};
use daegi_domain::{ItemId, Millis, PaceReason, PaceState};
use daegi_store::{Result, SharedStore};

use crate::{TickReport, metrics};

/// The gauges of one term.
#[derive(Debug)]
pub(super) struct LineGauges {
    store: SharedStore,
    /// Items whose gauges may differ from 0.
    published: HashSet<ItemId>,
    /// Why each adaptive pace had its rate at the last tick.
    paces: HashMap<ItemId, PaceReason>,
}

impl LineGauges {
    pub(super) fn new(store: SharedStore) -> Self {
        Self { store, published: HashSet::new(), paces: HashMap::new() }
    }

    /// Sets the gauges after a tick. If the store is unavailable, the gauges of waiting tickets, entries
    /// and outbox keep their values; the tick logs the outage.
    pub(super) async fn update(&mut self, report: &TickReport, now: Millis) {
        gauge!(metrics::ACTIVE_LINES).set(report.lines.len() as f64);
        gauge!(metrics::RECOVERING_LINES).set(report.recovering);
        gauge!(metrics::HELD_LINES).set(report.outbox_full);
        let published = report.beacon_overdue.iter().map(|beacon| beacon.published_at).min();
        let overdue_ms = published.map_or(0, |published| now.saturating_sub(published));
        gauge!(metrics::BEACON_OVERDUE).set(overdue_ms as f64 / 1000.0);
        self.update_paces(report);
        if let Err(error) = self.try_update(report).await {
            tracing::debug!(%error, "line gauges not updated");
        }
    }

    /// Sets all gauges to 0 at the end of the term; the next leader sets them.
    pub(super) fn clear(&mut self) {
        self.published.drain().for_each(|item| clear_line(&item));
        self.paces.drain().for_each(|(item, _)| set_pace(&item, None));
        gauge!(metrics::RECOVERING_LINES).set(0);
        gauge!(metrics::HELD_LINES).set(0);
        gauge!(metrics::BEACON_OVERDUE).set(0);
        gauge!(metrics::ACTIVE_LINES).set(0);
        gauge!(metrics::OUTBOX).set(0);
    }

    fn update_paces(&mut self, report: &TickReport) {
        let is_gone = |item: &&ItemId| !report.paces.contains_key(*item);
        self.paces.keys().filter(is_gone).for_each(|item| set_pace(item, None));
        for (item, pace) in &report.paces {
            set_pace(item, Some(pace));
            let before = self.paces.get(item);
            if let Some(reason) = cut_label(pace.reason)
                && before.copied().and_then(cut_label) != Some(reason)
            {
                counter!(metrics::PACE_CUTS, "item" => item.to_string(), "reason" => reason)
                    .increment(1);
                let (component, rate) = ("pace", pace.per_second());
                tracing::info!(component, item.id = %item, reason, rate, p95_ms = pace.p95_ms, "rate cut");
            }
        }
        self.paces = report.paces.iter().map(|(item, pace)| (item.clone(), pace.reason)).collect();
    }

    async fn try_update(&mut self, report: &TickReport) -> Result<()> {
        let active: HashSet<_> = report.lines.iter().cloned().collect();
        self.published.difference(&active).for_each(clear_line);
        self.published = active;
        for item in &self.published {
            let open = f64::from(u8::from(report.open.contains(item)));
            gauge!(metrics::OPEN, "item" => item.to_string()).set(open);
        }
        let counts = self.store.counts(&report.lines).await?;
        for line in &counts {
            set_line(&line.item, line.waiting + line.returning, line.entered);
        }
        let in_line = counts.iter().map(|line| line.waiting + line.returning + line.missed);
        self.store.publish_waiting(in_line.sum()).await?;
        let pending = outbox_pending(&self.store).await?;
        gauge!(metrics::OUTBOX).set(pending as f64);
        Ok(())
    }
}

fn set_pace(item: &ItemId, pace: Option<&PaceState>) {
    let p95_ms = pace.and_then(|pace| pace.p95_ms).unwrap_or(0);
    let rate = pace.map_or(0.0, PaceState::per_second);
    gauge!(metrics::PACE_RATE, "item" => item.to_string()).set(rate);
    gauge!(metrics::PACE_ORIGIN_P95, "item" => item.to_string()).set(f64::from(p95_ms) / 1000.0);
}

/// Returns the label of a reason that cuts the rate.
fn cut_label(reason: PaceReason) -> Option<&'static str> {
    match reason {
        PaceReason::CutLatency => Some("latency"),
        PaceReason::CutErrors => Some("errors"),
        PaceReason::NoSignals => Some("no_signals"),
        PaceReason::Started
        | PaceReason::Unlimited
        | PaceReason::Raised
        | PaceReason::NoDemand
        | PaceReason::Held => None,
    }
}

fn clear_line(item: &ItemId) {
    gauge!(metrics::OPEN, "item" => item.to_string()).set(0);
    set_line(item, 0, 0);
}

fn set_line(item: &ItemId, waiting: u64, entered: u64) {
    gauge!(metrics::WAITING, "item" => item.to_string()).set(waiting as f64);
    gauge!(metrics::ENTERED, "item" => item.to_string()).set(entered as f64);
}

/// Returns how many events of all partitions are not published yet.
pub(crate) async fn outbox_pending(store: &SharedStore) -> Result<u64> {
    let partitions = (0..store.partitions()).map(|partition| store.outbox_len(partition));
    let pending = futures_util::future::try_join_all(partitions).await?;
    Ok(pending.into_iter().sum())
}
