//! Injected faults, and the terms of leaders.

use serde::{Deserialize, Serialize};

use super::Millis;

/// An injected fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind.
    pub what: FaultKind,
    /// The target: `scheduler-1`, `api-2`, `consumer-1`, `redis`, `kafka`.
    pub target: String,
    /// Begin.
    pub from: Millis,
    /// End.
    pub to: Millis,
}

/// The kinds of faults of processes, connections and servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    /// SIGKILL and a later restart.
    Kill,
    /// SIGTERM and a later restart.
    Stop,
    /// SIGSTOP and a later SIGCONT.
    Pause,
    /// Delays its traffic with Redis.
    Delay,
    /// Resets its connections to Redis, new ones included.
    Reset,
    /// Holds the replies of Redis; requests arrive.
    HoldReplies,
    /// Holds all traffic with Redis; requests arrive when the fault ends.
    HoldAll,
    /// Holds an admission on its way to Redis, and everything after it, until the fault ends.
    TrapAdmission,
    /// `FLUSHALL`: total data loss between two commands.
    Flush,
    /// SIGKILL and an empty restart.
    RestartEmpty,
    /// SIGKILL of a master; its replica takes over with the writes that it had received.
    FailOver,
    /// Continues with an older state.
    Rollback,
    /// Not injected: the machine did not answer a ping in time.
    Stall,
}

impl FaultKind {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Delay => "delay",
            Self::Reset => "reset",
            Self::HoldReplies => "hold replies",
            Self::HoldAll => "hold all",
            Self::TrapAdmission => "trap admission",
            Self::Flush => "flush",
            Self::RestartEmpty => "restart empty",
            Self::FailOver => "fail-over",
            Self::Rollback => "rollback",
            Self::Stall => "stall",
        }
    }

    /// Whether acknowledged writes may be lost.
    #[must_use]
    pub fn loses_data(self) -> bool {
        matches!(self, Self::Flush | Self::RestartEmpty | Self::Rollback | Self::FailOver)
    }

    /// Whether all data is lost, items included.
    #[must_use]
    pub fn loses_items(self) -> bool {
        matches!(self, Self::Flush | Self::RestartEmpty)
    }
}

/// A term of a scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Term {
    /// The leader, such as `scheduler-1`.
    pub member: String,
    /// The term's epoch.
    pub epoch: u64,
    /// Begin.
    pub from: Millis,
    /// End by the log of the leader, or when it was killed.
    pub to: Millis,
    /// Why it ended.
    pub end: TermEnd,
}

/// Why a term ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TermEnd {
    /// The process was stopped.
    Stopped,
    /// The lease could not be renewed.
    LeaseLost,
    /// The store rejected the epoch.
    Fenced,
    /// The process was killed.
    Killed,
    /// The term had not ended at the end of the run.
    Open,
}
