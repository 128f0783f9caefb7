//! Samples all lines for operators, on every replica: the last half hour of each line, the memory of the
//! store, and the heartbeat of this replica.
//!
//! The history is in the memory of this replica. After a restart it is empty and grows again.

mod estimates;
mod history;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::metrics::gauge;
use daegi_domain::{Eta, Heartbeat, ItemId, Lane, Millis};
use daegi_runtime::Clock;
use daegi_runtime::outage::OutageLog;
use daegi_store::{LineCounts, Result, SharedStore};
use tokio::time::{Instant, interval};

use crate::relay::RecentEvents;
use crate::{Leadership, metrics};
pub use estimates::EstimateTotals;
use estimates::{Estimates, MAX_LINES};
use history::History;
pub use history::{SAMPLE_MS, Sample};

/// How often a replica sends its heartbeat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// Window over which the admission rate of a line is measured.
const RATE_WINDOW_MS: Millis = 30_000;

/// Samples lines and sends heartbeats.
#[derive(Debug)]
pub struct LineMonitor {
    store: SharedStore,
    clock: Clock,
    leadership: Arc<Leadership>,
    recent: Arc<RecentEvents>,
    history: Mutex<History>,
    estimates: Mutex<Estimates>,
}

impl LineMonitor {
    /// A monitor without samples.
    #[must_use]
    pub fn new(
        store: SharedStore,
        clock: Clock,
        leadership: Arc<Leadership>,
        recent: Arc<RecentEvents>,
    ) -> Self {
        Self {
            store,
            clock,
            leadership,
            recent,
            history: Mutex::default(),
            estimates: Mutex::default(),
        }
    }

    /// Samples and sends heartbeats. Never returns.
    pub async fn run(self: Arc<Self>) {
        let mut outage = OutageLog::new("monitor");
        let mut heartbeats = interval(HEARTBEAT_INTERVAL);
        let mut sampled: Option<Instant> = None;
        loop {
            heartbeats.tick().await;
            let is_due =
                sampled.is_none_or(|at| at.elapsed().as_millis() + 100 >= SAMPLE_MS.into());
            if is_due {
                sampled = Some(Instant::now());
            }
            match self.run_once(is_due).await {
                Ok(()) => outage.recovered(),
                Err(error) => {
                    outage.failed(&error);
                }
            }
        }
    }

    async fn run_once(&self, samples: bool) -> Result<()> {
        self.send_heartbeat().await?;
        if samples {
            self.record_store_memory().await?;
            self.sample().await?;
        }
        Ok(())
    }

    /// Samples every active line, and lines that were active at the last sample.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn sample(&self) -> Result<()> {
        let lines = self.store.active_lines().await?;
        let now = self.clock.now_ms();
        let mut sampled: HashSet<ItemId> =
            lines.into_iter().filter(|line| !line.is_reserved()).collect();
        sampled.extend(self.history().recently_active(now));
        let lines: Vec<_> = sampled.into_iter().collect();
        let counts = self.store.counts(&lines).await?;
        self.history().add(&counts, now);
        self.score_estimates(counts).await
    }

    /// Samples and scores estimates of the lines with the most waiting tickets.
    async fn score_estimates(&self, mut counts: Vec<LineCounts>) -> Result<()> {
        counts.sort_by_key(|line| std::cmp::Reverse(line.waiting + line.returning));
        counts.truncate(MAX_LINES);
        let lines: Vec<_> = counts.into_iter().map(|line| line.item).collect();
        self.estimates().retain(&lines);
        let settings = self.store.settings().await?;
        let leads = self.leadership.status().term.is_some();
        for line in &lines {
            let cursor = self.estimates().cursor(line);
            let snapshot = self.store.snapshot(line, Lane::STANDARD, cursor).await?;
            let now = self.clock.now_ms();
            if let Some(snapshot) = snapshot {
                self.estimates().observe(&snapshot, &settings, now, leads);
            }
        }
        Ok(())
    }

    async fn record_store_memory(&self) -> Result<()> {
        if let Some(memory) = self.store.memory().await? {
            gauge!(metrics::STORE_MEMORY).set(memory.used as f64);
            gauge!(metrics::STORE_MEMORY_LIMIT).set(memory.limit as f64);
        }
        Ok(())
    }

    /// Writes the heartbeat of this replica to the store.
    ///
    /// # Errors
    /// If the store is unavailable.
    pub async fn send_heartbeat(&self) -> Result<()> {
        let status = self.leadership.status();
        let events = if status.term.is_some() { self.recent.events() } else { Vec::new() };
        let millis = |took: Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let heartbeat = Heartbeat::Scheduler {
            term: status.term.map(|term| (term.epoch.0, term.since)),
            last_tick_millis: status.last_tick.map(millis),
            events,
        };
        let text = serde_json::to_string(&heartbeat).unwrap_or_default();
        self.store.put_heartbeat(self.leadership.replica(), &text, self.clock.now_ms()).await
    }

    /// Returns the samples of a line, oldest first.
    #[must_use]
    pub fn samples(&self, id: &ItemId) -> Vec<Sample> {
        self.history().samples(id)
    }

    /// Returns the admissions per second of the last 30 s, given the total at `now`; `None` if
    /// there is no sample of this time that is at least 4.5 s old.
    #[must_use]
    pub fn admitted_per_second(&self, id: &ItemId, admitted: u64, now: Millis) -> Option<f64> {
        let since = now.saturating_sub(RATE_WINDOW_MS + SAMPLE_MS);
        let oldest = self.history().oldest_since(id, since)?;
        let elapsed = now.checked_sub(oldest.at).filter(|elapsed| *elapsed + 500 >= SAMPLE_MS)?;
        let admissions = admitted.saturating_sub(oldest.admitted.into());
        Some(admissions as f64 * 1000.0 / elapsed as f64)
    }

    /// Returns how many sampled tickets of a line were admitted within the range they were shown at the join, as far
    /// as this replica sampled it.
    #[must_use]
    pub fn estimate_totals(&self, id: &ItemId) -> Option<EstimateTotals> {
        self.estimates().totals(id)
    }

    /// Returns what a ticket that joined at the latest sample would see; `None` if that is unknown or old.
    #[must_use]
    pub fn newcomer_estimate(&self, id: &ItemId, now: Millis) -> Option<Eta> {
        self.estimates().newcomer(id, now.saturating_sub(3 * SAMPLE_MS))
    }

    fn estimates(&self) -> std::sync::MutexGuard<'_, Estimates> {
        self.estimates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn history(&self) -> std::sync::MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
