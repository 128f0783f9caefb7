//! What a tick did, for logs, metrics and tests.

use std::collections::HashSet;
use std::time::Duration;

use daegi_domain::{ItemId, LineState, Settings};
use daegi_store::{Error, Result};
use metrics::counter;

use super::line::Moved;
use crate::meters;

/// What one round did.
#[derive(Debug, Clone)]
pub struct TickReport {
    /// What applied to every line.
    pub settings: Settings,
    /// The lines that were looked at.
    pub lines: Vec<ItemId>,
    /// Those of them that let people in.
    pub open: HashSet<ItemId>,
    /// How many of them lost data and let nobody in yet.
    pub recovering: u32,
    /// People let in.
    pub admitted: u32,
    /// People put aside.
    pub missed: u32,
    /// Entries that were not used in time.
    pub expired: u32,
    /// People unseen for too long.
    pub abandoned: u32,
    /// Lines that admit no ticket because the outbox is full.
    pub outbox_full: u32,
    /// Reserved lines that were removed.
    pub purged: u32,
    /// Lines the store could not read.
    pub skipped: u32,
    /// Why lines were left out: a server of the store is away.
    pub away: Option<Error>,
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
            away: None,
        }
    }

    /// How long this tick lasts.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_millis(self.settings.tick_ms.into())
    }

    pub(super) fn add(&mut self, id: ItemId, moved: &Moved) {
        self.recovering += u32::from(moved.state == Some(LineState::Recovering));
        if moved.state == Some(LineState::Open) {
            self.open.insert(id.clone());
        }
        counter!(meters::ADMITTED, "item" => id.to_string()).increment(moved.admitted.into());
        self.lines.push(id);
        self.admitted += moved.admitted;
        self.missed += moved.missed;
        self.expired += moved.expired;
        self.abandoned += moved.abandoned;
        self.outbox_full += u32::from(moved.outbox_full);
    }

    /// One bad line must not stop all others, so it is only named, every time.
    pub(super) fn skip(&mut self, id: &ItemId, what: &str) {
        tracing::error!(item.id = %id, error = what, "line skipped");
        self.skipped += 1;
    }

    /// An answer, none from a server that is away: its lines wait, and nobody else's.
    pub(super) fn unless_away<T>(&mut self, answer: Result<T>) -> Result<Option<T>> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_transient() => {
                self.away.get_or_insert(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn count(&self) {
        counter!(meters::MISSED).increment(self.missed.into());
        counter!(meters::EXPIRED).increment(self.expired.into());
        counter!(meters::ABANDONED).increment(self.abandoned.into());
        counter!(meters::OUTBOX_FULL).increment(self.outbox_full.into());
        counter!(meters::LINES_SKIPPED).increment(self.skipped.into());
    }
}
