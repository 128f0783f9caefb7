//! The result of a tick, for logs, metrics and tests.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use ::metrics::counter;
use daegi_domain::{ItemId, LineState, Millis, PaceState, Settings, rfc3339};
use daegi_store::{Error, Result};

use super::line::LineRoundReport;
use crate::metrics;

/// How long after its publication a round is overdue: relays have it within about a second, and ticks take time.
const OVERDUE_AFTER_MS: Millis = 5_000;

/// What one tick did.
#[derive(Debug, Clone)]
pub struct TickReport {
    /// The settings that applied to every line.
    pub settings: Settings,
    /// The lines that were processed.
    pub lines: Vec<ItemId>,
    /// Those of them that admit tickets.
    pub open: HashSet<ItemId>,
    /// How many of them lost data and hold admission.
    pub recovering: u32,
    /// Admitted tickets.
    pub admitted: u32,
    /// Tickets whose user was absent at their turn.
    pub missed: u32,
    /// Entries that expired unused.
    pub expired: u32,
    /// Tickets whose user was absent too long.
    pub abandoned: u32,
    /// Lines that admit no ticket because the outbox is full.
    pub outbox_full: u32,
    /// Lines that wait for the round of their beacon although it is published.
    pub beacon_overdue: Vec<OverdueBeacon>,
    /// The states of adaptive paces.
    pub paces: HashMap<ItemId, PaceState>,
    /// Reserved lines that were removed.
    pub purged: u32,
    /// Lines whose stored data is unreadable.
    pub skipped: u32,
    /// Why lines were skipped: a server of the store is unavailable.
    pub unavailable: Option<Error>,
}

/// A line that waits for the round of its beacon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverdueBeacon {
    /// The item of the line.
    pub item: ItemId,
    /// The round.
    pub round: u64,
    /// When drand published it.
    pub published_at: Millis,
}

/// The text for the log, the same in each tick.
impl fmt::Display for OverdueBeacon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (item, round) = (&self.item, self.round);
        let published = rfc3339(self.published_at);
        write!(
            f,
            "the line of {item} waits for round {round} of drand, published at {published}: check \
             --drand-urls (DAEGI_DRAND_URLS), or hand its signature in with PUT …/opening/beacon"
        )
    }
}

impl TickReport {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            lines: Vec::new(),
            open: HashSet::new(),
            recovering: 0,
            admitted: 0,
            missed: 0,
            expired: 0,
            abandoned: 0,
            outbox_full: 0,
            beacon_overdue: Vec::new(),
            paces: HashMap::new(),
            purged: 0,
            skipped: 0,
            unavailable: None,
        }
    }

    /// Returns the tick length of the settings that this tick used.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_millis(self.settings.tick_ms.into())
    }

    pub(super) fn add(&mut self, id: ItemId, round: &LineRoundReport, now: Millis) {
        if let Some((number, published_at)) = round.awaited_round
            && now.saturating_sub(published_at) >= OVERDUE_AFTER_MS
        {
            let overdue = OverdueBeacon { item: id.clone(), round: number, published_at };
            self.beacon_overdue.push(overdue);
        }
        self.recovering += u32::from(round.state == Some(LineState::Recovering));
        if round.state == Some(LineState::Open) {
            self.open.insert(id.clone());
        }
        if let Some((_, state)) = &round.pace {
            self.paces.insert(id.clone(), state.clone());
        }
        counter!(metrics::ADMITTED, "item" => id.to_string()).increment(round.admitted.into());
        self.lines.push(id);
        self.admitted += round.admitted;
        self.missed += round.missed;
        self.expired += round.expired;
        self.abandoned += round.abandoned;
        self.outbox_full += u32::from(round.outbox_full);
    }

    /// Counts a line with unreadable data as skipped, so that it does not stop the others. Logs it at
    /// every tick.
    pub(super) fn skip_corrupt(&mut self, id: &ItemId, error: &str) {
        let component = "tick";
        tracing::error!(component, item.id = %id, error, "stored data unreadable, line skipped");
        self.skipped += 1;
    }

    /// Returns `None` for a reply of an unavailable server: its lines are skipped in this tick, and no
    /// others.
    pub(super) fn skip_unavailable<T>(&mut self, reply: Result<T>) -> Result<Option<T>> {
        match reply {
            Ok(reply) => Ok(Some(reply)),
            Err(error) if error.is_transient() => {
                self.unavailable.get_or_insert(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the tick to the counters.
    pub(crate) fn record(&self) {
        counter!(metrics::MISSED).increment(self.missed.into());
        counter!(metrics::EXPIRED).increment(self.expired.into());
        counter!(metrics::ABANDONED).increment(self.abandoned.into());
        counter!(metrics::OUTBOX_FULL).increment(self.outbox_full.into());
        counter!(metrics::LINES_SKIPPED).increment(self.skipped.into());
    }
}
