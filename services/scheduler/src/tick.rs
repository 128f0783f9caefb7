//! One round of the leader over the active lines.
//!
//! Every step in it is one atomic script that checks the epoch and the item again, so a tick may
//! break off anywhere, and a setting that changes in the middle of one is simply met earlier.

mod line;
mod report;

use std::collections::{HashMap, HashSet};

use daegi_domain::{ItemId, Millis, Number, Settings};
use daegi_store::{Epoch, Error, Result, SharedStore};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use line::LineRound;
pub use report::TickReport;

/// How many lines move at once: enough to hide the way to the store, too few to flood it.
const LINES_AT_ONCE: usize = 8;

/// A reserved line (a pod's warm-up) is of no use to anybody after this long.
const RESERVED_KEEP_MS: Millis = 60_000;

/// How often the leader compares the settings in the partitions with those of the store.
const COPY_INTERVAL_MS: Millis = 1_000;

/// Does the rounds of one term. What it remembers is only convenience: a new leader starts with
/// nothing and does the same work.
#[derive(Debug)]
pub struct Ticker {
    store: SharedStore,
    epoch: Epoch,
    outbox_max: u64,
    /// Where the sweep of each line goes on; missing ones start at the front.
    sweeps: HashMap<ItemId, Number>,
    /// When every partition had the settings for the last time.
    copied_at: Millis,
    /// When this leader first met each reserved line.
    reserved: HashMap<ItemId, Millis>,
}

impl Ticker {
    /// A ticker for the term of `epoch`.
    #[must_use]
    pub fn new(store: SharedStore, epoch: Epoch, outbox_max: u64) -> Self {
        let (sweeps, reserved) = (HashMap::new(), HashMap::new());
        Self { store, epoch, outbox_max, sweeps, copied_at: 0, reserved }
    }

    /// One round at `now`. A line the store cannot read is skipped, and so are those of a server
    /// that is away; the others still move.
    ///
    /// # Errors
    /// [`Error::StaleEpoch`] if another replica leads, [`Error::Unavailable`] if the settings
    /// cannot be had.
    pub async fn tick(&mut self, now: Millis) -> Result<TickReport> {
        let settings = self.store.settings().await?;
        let mut report = TickReport::new(settings);
        self.copy_settings(now, &mut report).await?;
        let lines = self.active_lines(&mut report).await?;
        let (reserved, lines): (Vec<_>, _) = lines.into_iter().partition(ItemId::is_reserved);
        self.purge(reserved, now, &mut report).await?;
        self.forget_all_but(&lines);
        self.go_round(lines, now, &mut report).await?;
        Ok(report)
    }

    /// Writes the settings into partitions that have older ones, at the begin of the term and then
    /// once per second: an operator's call may have failed half-way.
    async fn copy_settings(&mut self, now: Millis, report: &mut TickReport) -> Result<()> {
        if now.abs_diff(self.copied_at) >= COPY_INTERVAL_MS {
            let copied = report.unless_away(self.store.copy_settings().await)?;
            self.copied_at = copied.map_or(0, |()| now);
        }
        Ok(())
    }

    async fn active_lines(&self, report: &mut TickReport) -> Result<Vec<ItemId>> {
        let partitions = 0..self.store.partitions();
        let asked = partitions.map(|partition| self.store.active_lines_of(partition));
        let mut lines = Vec::new();
        for answer in join_all(asked).await {
            lines.extend(report.unless_away(answer)?.unwrap_or_default());
        }
        Ok(lines)
    }

    async fn go_round(
        &mut self,
        lines: Vec<ItemId>,
        now: Millis,
        report: &mut TickReport,
    ) -> Result<()> {
        let rounds: Vec<_> =
            lines.into_iter().map(|id| self.round(id, report.settings, now)).collect();
        let mut rounds = stream::iter(rounds).buffer_unordered(LINES_AT_ONCE);
        while let Some((id, moved)) = rounds.next().await {
            let failure = match moved {
                Ok(moved) => {
                    self.sweeps.insert(id.clone(), moved.sweep_from);
                    report.add(id.clone(), &moved);
                    moved.failure
                }
                Err(error) => Some(error),
            };
            match failure {
                Some(Error::Corrupt(what)) => report.skip(&id, &what),
                Some(error) => drop(report.unless_away::<()>(Err(error))?),
                None => {}
            }
        }
        Ok(())
    }

    /// The round of one line, as a future that borrows nothing of the ticker.
    fn round(
        &self,
        id: ItemId,
        settings: Settings,
        now: Millis,
    ) -> impl Future<Output = (ItemId, Result<line::Moved>)> + Send + use<> {
        let round = LineRound {
            store: self.store.clone(),
            epoch: self.epoch,
            outbox_max: self.outbox_max,
            settings,
            now,
            sweep_from: self.sweeps.get(&id).copied().unwrap_or(Number(0)),
        };
        async move {
            let moved = round.run(&id).await;
            (id, moved)
        }
    }

    /// Removes reserved lines that are old enough; younger ones may still be warming a pod up.
    async fn purge(
        &mut self,
        met: Vec<ItemId>,
        now: Millis,
        report: &mut TickReport,
    ) -> Result<()> {
        let before = std::mem::take(&mut self.reserved);
        for id in met {
            let since = before.get(&id).copied().unwrap_or(now);
            if now.saturating_sub(since) < RESERVED_KEEP_MS {
                self.reserved.insert(id, since);
            } else if report.unless_away(self.store.purge(&id).await)?.is_some() {
                report.purged += 1;
            }
        }
        Ok(())
    }

    /// A line that is no longer active needs no sweep.
    fn forget_all_but(&mut self, lines: &[ItemId]) {
        let active: HashSet<_> = lines.iter().collect();
        self.sweeps.retain(|id, _| active.contains(id));
    }
}
