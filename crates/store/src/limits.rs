//! Limits and retention times that both stores share.

use daegi_domain::Millis;
use daegi_domain::liveness::SLICE_MS;

/// Tickets that one call of a leader's script handles at most, so that the call blocks Redis for
/// about 0.5 ms. On a slow or shared core the call takes longer. A higher limit does not admit more
/// tickets per second.
pub const MAX_USERS_PER_CALL: u32 = 100;

/// How long the store keeps the end of a ticket: 1 h.
pub const ENDED_RETENTION_MS: Millis = 3_600_000;

/// How long the store keeps the end of a ticket that was never admitted: 10 min. The client's next
/// polls still read it, and a client that joins and leaves in a loop does not fill the store.
/// Numbers that may be reclaimed after a data loss keep [`ENDED_RETENTION_MS`].
pub const WAITING_END_RETENTION_MS: Millis = 600_000;

/// The window in which leaves of one user are counted against [`crate::LeaveLimit`]: 10 min.
pub const LEAVE_WINDOW_MS: Millis = 600_000;

/// How long a line stays marked as held after the leader's last round found the outbox full: 10 s,
/// to which the store adds three times the `min_interval` of the round.
pub(crate) const HELD_MS: Millis = 10_000;

/// Entries that the audit log keeps.
pub const MAX_AUDIT_ENTRIES: u32 = 1_000;

/// Rules that the block and allow list has at most.
pub const MAX_ACCESS_RULES: u32 = 10_000;

/// Rules of the list that match user agents at most, because each request is compared with all of their texts.
pub const MAX_AGENT_RULES: u32 = 1_000;

/// Events that each log of the list keeps.
pub const MAX_ACCESS_EVENTS: u32 = 10_000;

/// Tickets of an item whose signals are stored: about 3 MB.
pub const MAX_SCORED_TICKETS: u32 = 50_000;

/// How long the signals of an item are kept after the last one: 24 h, the age of a ticket.
pub const SIGNAL_RETENTION_MS: Millis = 24 * 3_600_000;

/// Operators with tokens of their own.
pub const MAX_OPERATORS: u32 = 1_000;

/// How long a process counts as running after its last heartbeat: 10 s.
pub const HEARTBEAT_RETENTION_MS: Millis = 10_000;

/// How long a report of a pod about the origin of a line is kept: 1 min.
pub const ORIGIN_RETENTION_MS: Millis = 60_000;

/// Pods whose reports about the origin of one line are kept: each has at most 1.3 kB.
pub const MAX_ORIGIN_PODS: u64 = 256;

/// How long after a data loss numbers are reclaimed: 50 min. Shorter than [`ENDED_RETENTION_MS`],
/// so that the store never reclaims a ticket whose end it has deleted, even if clocks differ by
/// minutes.
pub const RECLAIM_WINDOW_MS: Millis = 3_000_000;

/// How many numbers a line's counter skips at least after a data loss: more than the store can have
/// issued and lost, for any clock skew.
pub(crate) const LOSS_GAP: u64 = 1 << 20;

/// How fast the counter of a restored lobby moves with the time since the last record, so that a second loss
/// before the next record does not issue the same numbers: more than a line issues per millisecond.
pub(crate) const LOBBY_NUMBERS_PER_MS: u64 = 8;

/// Numbers of a drawn cohort at most: 8 million. Earlier numbers are served first, by number. Only a data loss
/// in a lobby can leave a gap that makes a cohort this large.
pub(crate) const MAX_COHORT: u64 = 1 << 23;

/// Leaves of a draw that one call reads or writes at most: 32 KiB.
pub const LEAVES_PER_CALL: usize = 1_024;

/// How long the leaves of a draw are kept: 30 days, so that users can check the draw.
pub const LEAVES_RETENTION_MS: Millis = 30 * 24 * 3_600_000;

/// The log of settings, without a topic partition: recorded as read when all of its partitions are.
pub const CONTROL_LOG: &str = "control.changed";

/// How often the counter of a lobby is recorded: 10 s, in which a line issues fewer numbers than the counter skips after a loss.
pub const CHECKPOINT_INTERVAL_MS: Millis = 10_000;

/// Lost generations that a partition stores.
pub(crate) const MAX_LOST_GENERATIONS: usize = 16;

/// Changes that one snapshot returns at most.
pub const MAX_CHANGES_PER_SNAPSHOT: usize = 20_000;

/// Time slices for which liveness is kept: the longest absence limit of a policy (1 h) and 1 min.
pub(crate) const LIVENESS_SLICES: u64 = 3_600_000 / SLICE_MS + 4;
