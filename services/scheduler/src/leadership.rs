//! What this replica knows about its own part in leading. Who else leads is in the store, beside
//! the lease.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daegi_domain::Millis;
use daegi_runtime::process::replica_name;
use daegi_store::Epoch;
use metrics::{counter, gauge};

use crate::meters;

/// The leadership as one replica sees it. Written by the leader's loop, read by the admin API.
#[derive(Debug)]
pub struct Leadership {
    replica: String,
    standing: Mutex<Standing>,
}

/// What a replica is at the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// The term, if this replica leads.
    pub term: Option<Term>,
    /// How many terms of this replica have ended.
    pub hand_overs: u64,
    /// How often the store refused this replica because another one leads.
    pub stale_refusals: u64,
    /// How long the latest tick of this replica took.
    pub last_tick: Option<Duration>,
}

/// A term of this replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// Its epoch.
    pub epoch: Epoch,
    /// When it began.
    pub since: Millis,
}

/// Why a term ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The process stops.
    Stopped,
    /// The lease could not be renewed.
    Lost,
    /// The store said that another replica leads.
    Refused,
}

impl Ending {
    fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Lost => "lost",
            Self::Refused => "refused",
        }
    }
}

impl Default for Leadership {
    fn default() -> Self {
        Self::new()
    }
}

impl Leadership {
    /// A standby with a name that no other replica has.
    #[must_use]
    pub fn new() -> Self {
        gauge!(meters::IS_LEADER).set(0);
        gauge!(meters::TERM_SECONDS).set(0);
        counter!(meters::STALE).absolute(0);
        Self { replica: replica_name(), standing: Mutex::default() }
    }

    /// The name of this replica: host, process and a random number.
    pub fn replica(&self) -> &str {
        &self.replica
    }

    /// What this replica is now.
    pub fn standing(&self) -> Standing {
        self.lock().clone()
    }

    /// Whether this replica leads now.
    pub fn is_leading(&self) -> bool {
        self.lock().term.is_some()
    }

    pub(crate) fn begin(&self, epoch: Epoch, since: Millis) {
        self.lock().term = Some(Term { epoch, since });
        gauge!(meters::IS_LEADER).set(1);
        gauge!(meters::EPOCH).set(epoch.0 as f64);
        tracing::info!(replica = self.replica, epoch = epoch.0, "leading");
    }

    pub(crate) fn end(&self, epoch: Epoch, ending: Ending) {
        if ending == Ending::Refused {
            self.refused(epoch);
        }
        let mut standing = self.lock();
        standing.term = None;
        standing.hand_overs += 1;
        gauge!(meters::IS_LEADER).set(0);
        gauge!(meters::TERM_SECONDS).set(0);
        counter!(meters::HAND_OVERS, "reason" => ending.name()).increment(1);
        let reason = ending.name();
        tracing::info!(replica = self.replica, epoch = epoch.0, reason, "standing by");
    }

    fn refused(&self, epoch: Epoch) {
        self.lock().stale_refusals += 1;
        counter!(meters::STALE).increment(1);
        tracing::warn!(replica = self.replica, epoch = epoch.0, "another replica leads");
    }

    pub(crate) fn ticked(&self, took: Duration, now: Millis) {
        let mut standing = self.lock();
        standing.last_tick = Some(took);
        if let Some(term) = standing.term {
            gauge!(meters::TERM_SECONDS).set(now.saturating_sub(term.since) as f64 / 1000.0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        // Whole after every statement, so a panic elsewhere cannot have torn it.
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
