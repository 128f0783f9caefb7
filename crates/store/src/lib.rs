//! Where lines live.
//!
//! [`Store`] is one contract with two implementations that agree on every history:
//!
//! - [`MemoryStore`] is plain single-process data. It is the zero-set-up default and it *is* the
//!   specification: where the words of this crate and its behaviour differ, it wins.
//! - [`RedisStore`] is one Lua script per state change, so that a change is whole or absent
//!   however many pods and leaders run at once. It finds one server, the master that sentinels
//!   name, or the nodes of a cluster, and survives their going away.
//!
//! `tests/it/specification.rs` runs random histories against both and compares every reply.
//! [`Lease`] decides who leads; its epoch is checked inside every script a leader calls.
//!
//! Time always comes in as an argument: neither implementation reads a clock to decide anything.

pub mod clock_skew;
mod error;
mod lease;
mod memory;
mod model;
mod open;
mod redis;
mod store;

pub use error::{Error, Result};
pub use lease::{Lease, Leases, Reign};
pub use memory::{MemoryStore, Replica};
pub use model::{
    Admission, Catalogue, Closing, Counts, DepartedCursor, Epoch, Expiry, Joined, LeaveLimit,
    LineSnapshot, Memory, NewsOutcome, Notice, OutboxBatch, Place, PolicyChange, Put, Reentry,
    Refusal, Standing, Sweep, Totals,
};
pub use open::open;
pub use redis::RedisStore;
pub use store::{SharedStore, Store};

/// How many people one call of a leader's script handles at most, so that Redis never stalls: half
/// a millisecond, and not much longer where its core is a slow or a shared one. Larger calls let in no
/// more people per second.
pub const CHUNK: u32 = 100;

/// How long the end of a ticket is remembered, in milliseconds.
pub const CLOSED_KEEP_MS: daegi_domain::Millis = 3_600_000;

/// The time in which leaves of one user are counted against [`LeaveLimit`], in milliseconds.
pub const LEAVE_WINDOW_MS: daegi_domain::Millis = 600_000;

/// How long the mark of a line held by a full outbox outlives the leader's last round, in
/// milliseconds; three ticks are added.
const HELD_MS: daegi_domain::Millis = 10_000;

/// How long the end of a ticket that was never admitted is remembered, in milliseconds: long enough
/// for the client's next polls to read it, short enough that joining and leaving in a loop does not
/// fill the store. Numbers that a loss may bring back keep [`CLOSED_KEEP_MS`].
pub const WAITING_END_KEEP_MS: daegi_domain::Millis = 600_000;

/// How many changes of operators are remembered.
pub const JOURNAL_KEPT: u32 = 1_000;

/// How long a process counts as being there after its last notice, in milliseconds.
pub const NOTICE_KEEP_MS: daegi_domain::Millis = 10_000;

/// How long after a loss numbers of old are taken back, in milliseconds. Less than ends are
/// remembered, whatever the clocks say, so that nobody is taken back whose ticket ended since.
pub const TAKE_BACK_MS: daegi_domain::Millis = 3_000_000;

/// By how much a line's counter goes on at least after a loss: more than can have been given and
/// lost, whatever the clocks say.
const LEAP: u64 = 1 << 20;

/// How many departed numbers one snapshot brings at most.
pub const DEPARTED_PAGE: usize = 20_000;

/// For how many time slices liveness is kept: the longest limit a policy can ask for, and a few.
const SLICES_KEPT: u64 = 3_600_000 / daegi_domain::liveness::SLICE_MS + 4;

/// The partition an item belongs to (FNV-1a: stable across versions, machines and languages).
pub fn partition_of(id: &daegi_domain::ItemId, partitions: u16) -> u16 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = id.as_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
    (hash % u64::from(partitions)) as u16
}
