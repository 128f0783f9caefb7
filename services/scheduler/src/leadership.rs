//! The state of this replica in the leader election. Which other replica leads is in the store, beside
//! the lease; what all replicas do is in their heartbeats, see [`crate::monitor`].

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::metrics::{counter, gauge};
use daegi_domain::Millis;
use daegi_runtime::process::process_name;
use daegi_store::Epoch;

use crate::metrics;

/// The name of the election in logs.
const COMPONENT: &str = "leader";

/// The leadership as this replica sees it. Written by the leader loop, read by the admin API.
#[derive(Debug)]
pub struct Leadership {
    replica: String,
    status: Mutex<ReplicaStatus>,
}

/// The current state of a replica.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// The term, if this replica leads.
    pub term: Option<Term>,
    /// How many terms of this replica have ended.
    pub hand_overs: u64,
    /// How often the store rejected the epoch of this replica.
    pub stale_refusals: u64,
    /// How long the latest tick of this replica took; `None` if it never led.
    pub last_tick: Option<Duration>,
}

/// A term of this replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The epoch of the term.
    pub epoch: Epoch,
    /// When it began.
    pub since: Millis,
}

/// Why a term ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermEnd {
    /// The process stops.
    Stopped,
    /// The lease could not be renewed.
    LeaseLost,
    /// The store rejected the epoch, because another replica leads.
    Fenced,
}

impl TermEnd {
    /// The `reason` label of the metric and the log field.
    fn reason(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::LeaseLost => "lost",
            Self::Fenced => "refused",
        }
    }
}

impl Default for Leadership {
    fn default() -> Self {
        Self::new()
    }
}

impl Leadership {
    /// A standby with a unique replica name.
    #[must_use]
    pub fn new() -> Self {
        gauge!(metrics::IS_LEADER).set(0);
        gauge!(metrics::TERM_SECONDS).set(0);
        counter!(metrics::STALE).absolute(0);
        Self { replica: process_name(), status: Mutex::default() }
    }

    /// Returns the name of this replica: host, process id and a random number.
    pub fn replica(&self) -> &str {
        &self.replica
    }

    /// Returns the current state of this replica.
    pub fn status(&self) -> ReplicaStatus {
        self.lock().clone()
    }

    /// Returns whether this replica leads.
    pub fn is_leading(&self) -> bool {
        self.lock().term.is_some()
    }

    pub(crate) fn term_began(&self, epoch: Epoch, since: Millis) {
        self.lock().term = Some(Term { epoch, since });
        gauge!(metrics::IS_LEADER).set(1);
        gauge!(metrics::EPOCH).set(epoch.0 as f64);
        let (replica, epoch, component) = (&self.replica, epoch.0, COMPONENT);
        tracing::info!(component, replica, epoch, "elected leader");
    }

    pub(crate) fn term_ended(&self, epoch: Epoch, end: TermEnd) {
        if end == TermEnd::Fenced {
            self.fenced(epoch);
        }
        let mut status = self.lock();
        status.term = None;
        status.hand_overs += 1;
        gauge!(metrics::IS_LEADER).set(0);
        gauge!(metrics::TERM_SECONDS).set(0);
        let reason = end.reason();
        counter!(metrics::HAND_OVERS, "reason" => reason).increment(1);
        let (replica, epoch, component) = (&self.replica, epoch.0, COMPONENT);
        // `tools/chaos` reads both messages and the reason.
        if end == TermEnd::Stopped {
            tracing::info!(component, replica, epoch, reason, "leadership released");
        } else {
            tracing::info!(component, replica, epoch, reason, "leadership lost, now standby");
        }
    }

    fn fenced(&self, epoch: Epoch) {
        self.lock().stale_refusals += 1;
        counter!(metrics::STALE).increment(1);
        let (replica, epoch, component) = (&self.replica, epoch.0, COMPONENT);
        tracing::warn!(
            component,
            replica,
            epoch,
            "store rejected this epoch, another replica leads"
        );
    }

    pub(crate) fn record_tick(&self, took: Duration, now: Millis) {
        let mut status = self.lock();
        status.last_tick = Some(took);
        if let Some(term) = status.term {
            gauge!(metrics::TERM_SECONDS).set(now.saturating_sub(term.since) as f64 / 1000.0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReplicaStatus> {
        // The status is valid after every statement, so it can be used after a panic.
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
