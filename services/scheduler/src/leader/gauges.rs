//! What a leader shows about its lines. Only the leader looks, so that the fleet's sums are right.

use std::collections::HashSet;

use daegi_domain::ItemId;
use daegi_store::{Result, SharedStore};
use metrics::gauge;

use crate::{TickReport, meters};

/// The gauges of one term.
#[derive(Debug)]
pub(super) struct Gauges {
    store: SharedStore,
    /// Items whose gauges may differ from 0.
    shown: HashSet<ItemId>,
}

impl Gauges {
    pub(super) fn new(store: SharedStore) -> Self {
        Self { store, shown: HashSet::new() }
    }

    /// Shows the lines of a tick. A store that does not answer leaves the gauges as they are; the
    /// tick itself will complain.
    pub(super) async fn show(&mut self, report: &TickReport) {
        gauge!(meters::ACTIVE_LINES).set(report.lines.len() as f64);
        gauge!(meters::RECOVERING_LINES).set(report.recovering);
        gauge!(meters::HELD_LINES).set(report.outbox_full);
        if let Err(error) = self.try_show(report).await {
            tracing::debug!(%error, "gauges not refreshed");
        }
    }

    /// The end of the term: whoever leads next shows what there is to show.
    pub(super) fn clear(&mut self) {
        self.shown.drain().for_each(|item| empty(&item));
        gauge!(meters::RECOVERING_LINES).set(0);
        gauge!(meters::HELD_LINES).set(0);
        gauge!(meters::ACTIVE_LINES).set(0);
        gauge!(meters::OUTBOX).set(0);
    }

    async fn try_show(&mut self, report: &TickReport) -> Result<()> {
        let active: HashSet<_> = report.lines.iter().cloned().collect();
        self.shown.difference(&active).for_each(empty);
        self.shown = active;
        for item in &self.shown {
            let open = f64::from(u8::from(report.open.contains(item)));
            gauge!(meters::OPEN, "item" => item.to_string()).set(open);
        }
        let counts = self.store.counts(&report.lines).await?;
        for line in &counts {
            set(&line.item, line.waiting + line.returning, line.entered);
        }
        let in_line = counts.iter().map(|line| line.waiting + line.returning + line.missed);
        self.store.publish_waiting(in_line.sum()).await?;
        let pending = outbox_pending(&self.store).await?;
        gauge!(meters::OUTBOX).set(pending as f64);
        Ok(())
    }
}

/// Nobody is in this line, as far as this replica is to tell.
fn empty(item: &ItemId) {
    gauge!(meters::OPEN, "item" => item.to_string()).set(0);
    set(item, 0, 0);
}

fn set(item: &ItemId, waiting: u64, entered: u64) {
    gauge!(meters::WAITING, "item" => item.to_string()).set(waiting as f64);
    gauge!(meters::ENTERED, "item" => item.to_string()).set(entered as f64);
}

/// How many events of all partitions are not published yet.
pub(crate) async fn outbox_pending(store: &SharedStore) -> Result<u64> {
    let partitions = (0..store.partitions()).map(|partition| store.outbox_len(partition));
    let pending = futures_util::future::try_join_all(partitions).await?;
    Ok(pending.into_iter().sum())
}
