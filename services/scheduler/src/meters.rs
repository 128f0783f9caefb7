//! The names of all metrics of the scheduler, each with what it counts.

/// People let in, by item.
pub const ADMITTED: &str = "daegi_scheduler_admitted_total";
/// People put aside because nobody had seen them when their turn came.
pub const MISSED: &str = "daegi_scheduler_missed_total";
/// Entries that were not used in time.
pub const EXPIRED: &str = "daegi_scheduler_expired_total";
/// People taken out of a line because nobody had seen them for long.
pub const ABANDONED: &str = "daegi_scheduler_abandoned_total";
/// How long ticks take, as a histogram.
pub const TICK_SECONDS: &str = "daegi_scheduler_tick_seconds";
/// Ticks the store cut short.
pub const TICKS_FAILED: &str = "daegi_scheduler_ticks_failed_total";
/// Lines a tick had to skip, because the store holds something unexpected there.
pub const LINES_SKIPPED: &str = "daegi_scheduler_lines_skipped_total";
/// Lines in which a tick let nobody in because the outbox was full.
pub const OUTBOX_FULL: &str = "daegi_scheduler_outbox_full_total";
/// 1 while this replica leads, else 0; the sum over all replicas should be 1.
pub const IS_LEADER: &str = "daegi_scheduler_is_leader";
/// The epoch of this replica's latest term.
pub const EPOCH: &str = "daegi_scheduler_epoch";
/// How long this replica's term has lasted; 0 on standbys.
pub const TERM_SECONDS: &str = "daegi_scheduler_term_seconds";
/// Terms of this replica that have ended, by why: stopped, lost (the lease ran out) or refused.
pub const HAND_OVERS: &str = "daegi_scheduler_hand_overs_total";
/// Times the store refused this replica because another one leads.
pub const STALE: &str = "daegi_scheduler_stale_refusals_total";
/// Lines that need the leader.
pub const ACTIVE_LINES: &str = "daegi_scheduler_active_lines";
/// Lines that lost data and let nobody in until people are back; 0 on standbys.
pub const RECOVERING_LINES: &str = "daegi_scheduler_recovering_lines";
/// Lines that admit no ticket because the outbox is full; 0 on standbys.
pub const HELD_LINES: &str = "daegi_scheduler_held_lines";
/// 1 while a line lets people in, by item; 0 while it is paused, sold out, disabled, recovering or held,
/// and on standbys.
pub const OPEN: &str = "daegi_scheduler_line_open";
/// People who wait, by item; 0 on standbys.
pub const WAITING: &str = "daegi_scheduler_waiting_people";
/// People inside, by item; 0 on standbys.
pub const ENTERED: &str = "daegi_scheduler_entered_people";
/// Events in the outbox that are not published yet; 0 on standbys.
pub const OUTBOX: &str = "daegi_scheduler_outbox_events";
/// Bytes used by the server of the store that is fullest.
pub const STORE_MEMORY: &str = "daegi_store_memory_used_bytes";
/// Bytes that server may use; 0 if it has no limit.
pub const STORE_MEMORY_LIMIT: &str = "daegi_store_memory_limit_bytes";
/// Admin calls without the admin token, by `reason`: `wrong` or `missing`.
pub const SIGN_INS_FAILED: &str = "daegi_admin_sign_ins_failed_total";
/// Events the relay dropped because Kafka is off, by type.
pub const RELAY_DROPPED: &str = "daegi_relay_dropped_total";
/// Events the broker has confirmed, by type.
pub const RELAY_PUBLISHED: &str = "daegi_relay_published_total";
/// Attempts to publish a partition's oldest events that were not confirmed.
pub const RELAY_FAILED: &str = "daegi_relay_failed_total";
