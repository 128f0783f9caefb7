//! Looks at the lines for operators, on every replica, leader or not: what each line was like
//! over the last half hour, and what every process says about itself.
//!
//! The history is this replica's own memory. One that has just started has none, and says so by
//! answering with what it has.

mod history;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use daegi_domain::{ItemId, Millis, Presence};
use daegi_runtime::Clock;
use daegi_store::{Result, SharedStore};
use metrics::gauge;
use tokio::time::{Instant, interval};

use crate::relay::Recent;
use crate::trouble::Trouble;
use crate::{Leadership, meters};
use history::History;
pub use history::{SAMPLE_MS, Sample};

/// How often a replica says that it is there.
const PRESENCE: Duration = Duration::from_secs(2);

/// How far back the speed of a line is measured.
const RECENT_MS: Millis = 30_000;

/// Looks at the lines.
#[derive(Debug)]
pub struct Lookout {
    store: SharedStore,
    clock: Clock,
    leadership: Arc<Leadership>,
    recent: Arc<Recent>,
    history: Mutex<History>,
}

impl Lookout {
    /// A lookout that has seen nothing yet.
    #[must_use]
    pub fn new(
        store: SharedStore,
        clock: Clock,
        leadership: Arc<Leadership>,
        recent: Arc<Recent>,
    ) -> Self {
        Self { store, clock, leadership, recent, history: Mutex::default() }
    }

    /// Looks and tells for ever.
    pub async fn run(self: Arc<Self>) {
        let mut trouble = Trouble::new("lookout");
        let mut pace = interval(PRESENCE);
        let mut looked: Option<Instant> = None;
        loop {
            pace.tick().await;
            let due = looked.is_none_or(|at| at.elapsed().as_millis() + 100 >= SAMPLE_MS.into());
            if due {
                looked = Some(Instant::now());
            }
            match self.step(due).await {
                Ok(()) => trouble.over(),
                Err(error) => {
                    trouble.met(&error);
                }
            }
        }
    }

    async fn step(&self, due: bool) -> Result<()> {
        self.tell().await?;
        if due {
            self.weigh().await?;
            self.look().await?;
        }
        Ok(())
    }

    /// Takes a sample of every line somebody is in, and of those somebody just was in.
    ///
    /// # Errors
    /// If the store is away.
    pub async fn look(&self) -> Result<()> {
        let lines = self.store.active_lines().await?;
        let now = self.clock.now_ms();
        let mut seen: HashSet<ItemId> =
            lines.into_iter().filter(|line| !line.is_reserved()).collect();
        seen.extend(self.history().lately(now));
        let lines: Vec<_> = seen.into_iter().collect();
        let counts = self.store.counts(&lines).await?;
        self.history().add(&counts, now);
        Ok(())
    }

    /// Shows how full the store is.
    async fn weigh(&self) -> Result<()> {
        if let Some(memory) = self.store.memory().await? {
            gauge!(meters::STORE_MEMORY).set(memory.used as f64);
            gauge!(meters::STORE_MEMORY_LIMIT).set(memory.limit as f64);
        }
        Ok(())
    }

    /// Tells all replicas what this one is.
    ///
    /// # Errors
    /// If the store is away.
    pub async fn tell(&self) -> Result<()> {
        let standing = self.leadership.standing();
        let events = if standing.term.is_some() { self.recent.events() } else { Vec::new() };
        let millis = |took: Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let said = Presence::Scheduler {
            term: standing.term.map(|term| (term.epoch.0, term.since)),
            last_tick_millis: standing.last_tick.map(millis),
            events,
        };
        let text = serde_json::to_string(&said).unwrap_or_default();
        self.store.post_notice(self.leadership.replica(), &text, self.clock.now_ms()).await
    }

    /// What a line was like, oldest first.
    #[must_use]
    pub fn samples(&self, id: &ItemId) -> Vec<Sample> {
        self.history().samples(id)
    }

    /// How many people per second were let in lately, up to a moment at which so many had been in
    /// all; none while nobody has looked for long enough.
    #[must_use]
    pub fn admitted_per_second(&self, id: &ItemId, admitted: u64, now: Millis) -> Option<f64> {
        let oldest = self.history().oldest_since(id, now.saturating_sub(RECENT_MS + SAMPLE_MS))?;
        let elapsed = now.checked_sub(oldest.at).filter(|elapsed| *elapsed + 500 >= SAMPLE_MS)?;
        let people = admitted.saturating_sub(oldest.admitted.into());
        Some(people as f64 * 1000.0 / elapsed as f64)
    }

    fn history(&self) -> std::sync::MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
