//! What the nemesis did, and who led meanwhile.

use serde::{Deserialize, Serialize};

use super::Millis;

/// Something that was broken for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// What was done.
    pub what: FaultKind,
    /// To whom: `scheduler-1`, `api-2`, `consumer-1`, `redis`, `kafka`.
    pub target: String,
    /// Since when.
    pub from: Millis,
    /// Until it worked again.
    pub to: Millis,
}

/// What can be done to a process or to its way to Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    /// SIGKILL, and started again later.
    Kill,
    /// SIGTERM, and started again later.
    Stop,
    /// SIGSTOP, and SIGCONT later.
    Pause,
    /// Its way to Redis is slow.
    Slow,
    /// Its connections to Redis end, and new ones do.
    Cut,
    /// Redis hears it, but it does not hear Redis.
    Deaf,
    /// Its connections to Redis look alive; what it sends arrives when the fault is over.
    Dead,
    /// An admission on its way to Redis, and all that follows it, arrives when the fault is over.
    Snare,
    /// `FLUSHALL`: everything is lost in between two commands.
    Flush,
    /// SIGKILL, and started again without anything.
    Wipe,
    /// SIGKILL of a master whose replica takes over, with what it had heard by then.
    FailOver,
    /// Goes on with what it had a while ago.
    Rollback,
    /// Nobody's doing: the machine was too busy to answer in time.
    Stall,
}

impl FaultKind {
    /// As people read it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Slow => "slow",
            Self::Cut => "cut",
            Self::Deaf => "deaf",
            Self::Dead => "dead",
            Self::Snare => "snare",
            Self::Flush => "flush",
            Self::Wipe => "wipe",
            Self::FailOver => "fail-over",
            Self::Rollback => "rollback",
            Self::Stall => "stall",
        }
    }

    /// Whether what was acknowledged may be lost.
    #[must_use]
    pub fn loses(self) -> bool {
        matches!(self, Self::Flush | Self::Wipe | Self::Rollback | Self::FailOver)
    }

    /// Whether everything is lost, items included.
    #[must_use]
    pub fn forgets_items(self) -> bool {
        matches!(self, Self::Flush | Self::Wipe)
    }
}

/// A term of a scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Term {
    /// Who led: `scheduler-1`.
    pub member: String,
    /// The term's epoch.
    pub epoch: u64,
    /// Since when.
    pub from: Millis,
    /// Until when, by its own account, or when it was killed.
    pub to: Millis,
    /// Why it ended.
    pub ending: Ending,
}

/// Why a term ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// The process was told to stop.
    Stopped,
    /// The lease could not be renewed.
    Lost,
    /// The store said that another one leads.
    Refused,
    /// The process was killed.
    Killed,
    /// It had not when the run ended.
    Open,
}
