//! The result of a tick, for logs, metrics and tests.

use std::collections::HashSet;
use std::time::Duration;

use ::metrics::counter;
use daegi_domain::{ItemId, LineState, Settings};
use daegi_store::{Error, Result};

use super::line::LineRoundReport;
use crate::metrics;

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
    /// Reserved lines that were removed.
    pub purged: u32,
    /// Lines whose stored data is unreadable.
    pub skipped: u32,
    /// Why lines were skipped: a server of the store is unavailable.
    pub unavailable: Option<Error>,
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

    pub(super) fn add(&mut self, id: ItemId, round: &LineRoundReport) {
        self.recovering += u32::from(round.state == Some(LineState::Recovering));
        if round.state == Some(LineState::Open) {
            self.open.insert(id.clone());
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
