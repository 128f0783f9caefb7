//! One tick: the leader's round over all active lines.
//!
//! A tick runs a series of atomic scripts, each of which checks the epoch and the item again. A tick
//! may therefore stop after any script. A change of an item, and a quota of 0, apply from the next
//! script on; other changes of the settings apply from the next tick on.

mod line;
mod opening;
mod report;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use daegi_domain::{ItemId, Millis, Settings, TicketKeys};
use daegi_store::{Epoch, Error, Result, SharedStore};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use line::{LineRound, SweepCursors};
pub use report::{OverdueBeacon, TickReport};

use crate::pace::LinePace;
use crate::{Beacons, OriginProbes};

/// Lines processed concurrently: enough to hide the latency of the store, too few to overload it.
const MAX_CONCURRENT_LINES: usize = 8;

/// Age after which a reserved line (warm-up of a pod) is removed.
const RESERVED_RETENTION_MS: Millis = 60_000;

/// How often the leader compares unchanged settings with the copies in the partitions.
const COPY_INTERVAL_MS: Millis = 10_000;

/// Runs the ticks of one term. Its state only saves work: a new leader starts without it and
/// reaches the same result.
#[derive(Debug)]
pub struct Ticker {
    store: SharedStore,
    epoch: Epoch,
    outbox_max: u64,
    ticket_keys: Option<TicketKeys>,
    beacons: Option<Arc<Beacons>>,
    probes: Option<Arc<OriginProbes>>,
    /// What is known of the origin of each line with an adaptive pace.
    paces: HashMap<ItemId, LinePace>,
    /// Where the next sweep of each line continues; absent lines start at the front.
    sweeps: HashMap<ItemId, SweepCursors>,
    /// The settings that every partition had last, and when.
    copied: Option<(Settings, Millis)>,
    /// When this leader first saw each reserved line.
    reserved: HashMap<ItemId, Millis>,
}

impl Ticker {
    /// A ticker for the term of `epoch`.
    #[must_use]
    pub fn new(store: SharedStore, epoch: Epoch, outbox_max: u64) -> Self {
        let (sweeps, reserved, paces) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (ticket_keys, beacons, probes, copied) = (None, None, None, None);
        Self {
            store,
            epoch,
            outbox_max,
            ticket_keys,
            beacons,
            probes,
            paces,
            sweeps,
            copied,
            reserved,
        }
    }

    /// Sets the keys that sign tokens, without which no draw takes place.
    #[must_use]
    pub fn with_ticket_keys(mut self, keys: TicketKeys) -> Self {
        self.ticket_keys = Some(keys);
        self
    }

    /// Sets where the signatures of beacons come from, apart from operators who hand them in.
    #[must_use]
    pub fn with_beacons(mut self, beacons: Arc<Beacons>) -> Self {
        self.beacons = Some(beacons);
        self
    }

    /// Sets who probes the origins of lines with an adaptive pace, apart from the reports of pods.
    #[must_use]
    pub fn with_probes(mut self, probes: Arc<OriginProbes>) -> Self {
        self.probes = Some(probes);
        self
    }

    /// Runs one tick at `now`. Lines with unreadable data and lines of an unavailable server are
    /// skipped; the others are processed.
    ///
    /// # Errors
    /// [`Error::StaleEpoch`] if another replica leads, [`Error::Unavailable`] if the settings
    /// cannot be read.
    pub async fn tick(&mut self, now: Millis) -> Result<TickReport> {
        let settings = self.store.settings().await?;
        let mut report = TickReport::new(settings);
        self.copy_settings(now, &mut report).await?;
        let lines = self.active_lines(&mut report).await?;
        let (reserved, lines): (Vec<_>, _) = lines.into_iter().partition(ItemId::is_reserved);
        self.purge(reserved, now, &mut report).await?;
        self.retain_active(&lines);
        self.run_lines(lines, now, &mut report).await?;
        Ok(report)
    }

    /// Writes the settings into partitions that have older ones: at the beginning of the term, when they
    /// changed, and every [`COPY_INTERVAL_MS`], because an operator's call may have failed part-way.
    async fn copy_settings(&mut self, now: Millis, report: &mut TickReport) -> Result<()> {
        let is_current = self.copied.is_some_and(|(settings, at)| {
            settings == report.settings && now.abs_diff(at) < COPY_INTERVAL_MS
        });
        if !is_current {
            let copied = report.skip_unavailable(self.store.copy_settings().await)?;
            self.copied = copied.map(|()| (report.settings, now));
        }
        Ok(())
    }

    async fn active_lines(&self, report: &mut TickReport) -> Result<Vec<ItemId>> {
        let partitions = 0..self.store.partitions();
        let replies = partitions.map(|partition| self.store.active_lines_in(partition));
        let mut lines = Vec::new();
        for reply in join_all(replies).await {
            lines.extend(report.skip_unavailable(reply)?.unwrap_or_default());
        }
        Ok(lines)
    }

    async fn run_lines(
        &mut self,
        lines: Vec<ItemId>,
        now: Millis,
        report: &mut TickReport,
    ) -> Result<()> {
        let rounds: Vec<_> =
            lines.into_iter().map(|id| self.line_round(id, report.settings, now)).collect();
        let mut rounds = stream::iter(rounds).buffer_unordered(MAX_CONCURRENT_LINES);
        while let Some((id, round)) = rounds.next().await {
            let failure = match round {
                Ok(round) => {
                    report.add(id.clone(), &round, now);
                    if let Some((pace, _)) = round.pace {
                        self.paces.insert(id.clone(), pace);
                    }
                    self.sweeps.insert(id.clone(), round.sweep_from);
                    round.failure
                }
                Err(error) => Some(error),
            };
            match failure {
                Some(Error::Corrupt(error)) => report.skip_corrupt(&id, &error),
                Some(error) => drop(report.skip_unavailable::<()>(Err(error))?),
                None => {}
            }
        }
        Ok(())
    }

    /// Returns the round of one line as a future that does not borrow the ticker.
    fn line_round(
        &mut self,
        id: ItemId,
        settings: Settings,
        now: Millis,
    ) -> impl Future<Output = (ItemId, Result<line::LineRoundReport>)> + Send + use<> {
        let round = LineRound {
            store: self.store.clone(),
            epoch: self.epoch,
            outbox_max: self.outbox_max,
            ticket_keys: self.ticket_keys.clone(),
            beacons: self.beacons.clone(),
            probes: self.probes.clone(),
            pace: self.paces.remove(&id).unwrap_or_default(),
            settings,
            now,
            sweep_from: self.sweeps.get(&id).cloned().unwrap_or_default(),
        };
        async move {
            let report = round.run(&id).await;
            (id, report)
        }
    }

    /// Removes reserved lines that are old enough; a pod may still be warming up with younger ones.
    async fn purge(
        &mut self,
        found: Vec<ItemId>,
        now: Millis,
        report: &mut TickReport,
    ) -> Result<()> {
        let before = std::mem::take(&mut self.reserved);
        for id in found {
            let since = before.get(&id).copied().unwrap_or(now);
            if now.saturating_sub(since) < RESERVED_RETENTION_MS {
                self.reserved.insert(id, since);
            } else if report.skip_unavailable(self.store.purge(&id).await)?.is_some() {
                report.purged += 1;
            }
        }
        Ok(())
    }

    /// Drops the sweep positions of lines that are no longer active.
    fn retain_active(&mut self, lines: &[ItemId]) {
        let active: HashSet<_> = lines.iter().collect();
        self.sweeps.retain(|id, _| active.contains(id));
    }
}
