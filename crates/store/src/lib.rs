//! The state of all lines.
//!
//! [`Store`] is one contract, split into a trait per role, with two implementations that agree on every
//! history:
//!
//! - [`MemoryStore`] is plain single-process data: the default without configuration, and the
//!   specification. Where this documentation and its behaviour differ, its behaviour counts.
//! - [`RedisStore`] is one Lua script per state change, so that a change is applied completely or
//!   not at all with any number of pods and leaders. It connects to one server, to the master that
//!   sentinels report, or to the nodes of a cluster, and reconnects after a failure.
//!
//! `tests/it` runs random histories against both and compares every reply. [`Lease`] elects the
//! leader; scripts that a leader calls check its epoch.
//!
//! Time is an argument of the methods: no rule of a line reads a clock.
//!
//! | module | contents |
//! |---|---|
//! | `traits` | [`Store`] and its roles: [`ItemStore`], [`ReplayStore`], [`TicketStore`], [`AdmissionStore`], [`OpeningStore`], [`ControlStore`], [`OutboxStore`], [`AdminStore`], [`AccessStore`], [`SignalStore`], [`HistoryStore`] |
//! | `types` | arguments and results, by role |
//! | [`limits`] | limits and retention times |
//! | `lease`, `lock` | leader election: [`Lease`] over a [`LockBackend`] |
//! | `memory` | [`MemoryStore`] |
//! | `redis` | [`RedisStore`] |
//! | `open` | [`open()`]: either store from a configuration |
//! | [`clock_skew`] | the difference between this process's clock and Redis' |

pub mod clock_skew;
mod error;
mod lease;
pub mod limits;
mod lock;
mod memory;
mod open;
mod redis;
mod traits;
mod types;

pub use error::{Error, Result};
pub use lease::Lease;
pub use limits::{
    CHECKPOINT_INTERVAL_MS, CONTROL_LOG, ENDED_RETENTION_MS, HEARTBEAT_RETENTION_MS,
    LEAVE_WINDOW_MS, LEAVES_PER_CALL, LEAVES_RETENTION_MS, MAX_ACCESS_EVENTS, MAX_ACCESS_RULES,
    MAX_AGENT_RULES, MAX_AUDIT_ENTRIES, MAX_CHANGES_PER_SNAPSHOT, MAX_OPERATORS, MAX_ORIGIN_PODS,
    MAX_SCORED_TICKETS, MAX_USERS_PER_CALL, ORIGIN_RETENTION_MS, RECLAIM_WINDOW_MS,
    SIGNAL_RETENTION_MS, WAITING_END_RETENTION_MS,
};
pub use lock::{CurrentLeader, HeldLock, LockBackend, MemoryLock, Renewal};
pub use memory::{MemoryStore, StoreImage};
pub use open::open;
pub use redis::RedisStore;
pub use redis::client::access::{RedisConfig, RedisFiles};
#[doc(hidden)]
pub use redis::script_text;
pub use traits::{
    AccessStore, AdminStore, AdmissionStore, ControlStore, HistoryStore, ItemStore, OpeningStore,
    OutboxStore, PaceStore, ReplayStore, SharedStore, SignalStore, Store, TicketStore,
};
pub use types::{
    AccessChange, AccessLog, AccessOutcome, AccessRules, Admission, BeaconOutcome, ChangeCursor,
    EndOutcome, EntryProof, Epoch, Expiry, HeartbeatRecord, HourAppend, ItemUpdateOutcome,
    JoinOutcome, JoinRefusal, LaneCounts, LaneJoin, LeaveLimit, LineCounts, LineSnapshot,
    LineTotals, LiveState, MemoryUsage, OutboxBatch, PolicyUpdateOutcome, PutOperator, PutOutcome,
    ReplayState, Sweep, TicketState,
};

/// Returns the partition of an item (FNV-1a: the same in all versions, machines and languages).
pub fn partition_of(id: &daegi_domain::ItemId, partitions: u16) -> u16 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = id.as_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    (hash % u64::from(partitions)) as u16
}
