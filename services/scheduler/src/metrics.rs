//! The metrics of the scheduler. Each constant has its help text in [`describe`].

use ::metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Admitted tickets, by `item`.
pub const ADMITTED: &str = "daegi_scheduler_admitted_total";
/// Tickets whose user was absent at their turn.
pub const MISSED: &str = "daegi_scheduler_missed_total";
/// Entries that expired unused.
pub const EXPIRED: &str = "daegi_scheduler_expired_total";
/// Tickets that were removed from a line because their user was absent too long.
pub const ABANDONED: &str = "daegi_scheduler_abandoned_total";
/// Duration of ticks in seconds, as a histogram.
pub const TICK_SECONDS: &str = "daegi_scheduler_tick_seconds";
/// Ticks that failed, completely or for the lines of an unavailable server.
pub const TICKS_FAILED: &str = "daegi_scheduler_ticks_failed_total";
/// Lines that a tick skipped because their stored data is unreadable.
pub const LINES_SKIPPED: &str = "daegi_scheduler_lines_skipped_total";
/// Lines in which a tick admitted no ticket because the outbox was full.
pub const OUTBOX_FULL: &str = "daegi_scheduler_outbox_full_total";
/// 1 while this replica leads, else 0; the sum over all replicas should be 1.
pub const IS_LEADER: &str = "daegi_scheduler_is_leader";
/// The epoch of this replica's latest term.
pub const EPOCH: &str = "daegi_scheduler_epoch";
/// Age of this replica's term in seconds; 0 on standbys.
pub const TERM_SECONDS: &str = "daegi_scheduler_term_seconds";
/// Ended terms of this replica, by `reason`: `stopped`, `lost` (the lease expired) or `refused` (the store
/// rejected the epoch).
pub const HAND_OVERS: &str = "daegi_scheduler_hand_overs_total";
/// How often the store rejected the epoch of this replica because another one leads.
pub const STALE: &str = "daegi_scheduler_stale_refusals_total";
/// Lines with tickets; 0 on standbys.
pub const ACTIVE_LINES: &str = "daegi_scheduler_active_lines";
/// Lines that lost data and admit no ticket until tickets are reclaimed; 0 on standbys.
pub const RECOVERING_LINES: &str = "daegi_scheduler_recovering_lines";
/// Lines that admit no ticket because the outbox is full; 0 on standbys.
pub const HELD_LINES: &str = "daegi_scheduler_held_lines";
/// How long the round of a draw's beacon is published and not known, in seconds, of the line that waits longest; 0
/// if no line waits, and on standbys.
pub const BEACON_OVERDUE: &str = "daegi_scheduler_beacon_overdue_seconds";
/// 1 while a line admits tickets, by `item`; 0 while it is paused, sold out, disabled, recovering or held,
/// and on standbys.
pub const OPEN: &str = "daegi_scheduler_line_open";
/// Waiting tickets, by `item`; 0 on standbys.
pub const WAITING: &str = "daegi_scheduler_waiting_people";
/// Entries, by `item`; 0 on standbys.
pub const ENTERED: &str = "daegi_scheduler_entered_people";
/// The rate of an adaptive pace in users per second, by `item`; 0 on standbys.
pub const PACE_RATE: &str = "daegi_scheduler_pace_users_per_second";
/// The 95th percentile of the origin's response times as an adaptive pace saw it last, in seconds, by `item`; 0
/// while it is unknown, and on standbys.
pub const PACE_ORIGIN_P95: &str = "daegi_scheduler_pace_origin_p95_seconds";
/// Cuts of adaptive paces, by `item` and `reason`: `latency`, `errors` or `no_signals`. A cut that lasts over several ticks counts
/// once.
pub const PACE_CUTS: &str = "daegi_scheduler_pace_cuts_total";
/// Events in the outbox that are not published yet; 0 on standbys.
pub const OUTBOX: &str = "daegi_scheduler_outbox_events";
/// Sampled tickets that left the line, by `result`: `within` the range that they were shown at the join, `earlier` or
/// `later`; 0 on standbys.
pub const ESTIMATES: &str = "daegi_scheduler_eta_within_range_total";
/// Used memory in bytes of the fullest server of the store.
pub const STORE_MEMORY: &str = "daegi_store_memory_used_bytes";
/// Memory limit in bytes of that server; 0 if it has no limit.
pub const STORE_MEMORY_LIMIT: &str = "daegi_store_memory_limit_bytes";
/// Admin calls without the admin token, by `reason`: `wrong` or `missing`.
pub const SIGN_INS_FAILED: &str = "daegi_admin_sign_ins_failed_total";
/// 1 while the file of `DAEGI_BLOCKLIST` cannot be used, else 0; 0 on standbys.
pub const BLOCKLIST_INVALID: &str = "daegi_scheduler_blocklist_invalid";
/// Events that the relay dropped because Kafka is off, by `type`.
pub const RELAY_DROPPED: &str = "daegi_relay_dropped_total";
/// Events that the broker has confirmed, by `type`.
pub const RELAY_PUBLISHED: &str = "daegi_relay_published_total";
/// Sessions of a partition that failed because the broker did not confirm.
pub const RELAY_FAILED: &str = "daegi_relay_failed_total";

const COUNTERS: [(&str, &str); 15] = [
    (ADMITTED, "Admitted tickets, by item"),
    (MISSED, "Tickets whose user was absent at their turn"),
    (EXPIRED, "Entries that expired unused"),
    (ABANDONED, "Tickets removed because their user was absent too long"),
    (PACE_CUTS, "Cuts of adaptive paces, by item and reason"),
    (TICKS_FAILED, "Ticks that failed, completely or for the lines of an unavailable server"),
    (LINES_SKIPPED, "Lines that a tick skipped because their stored data is unreadable"),
    (OUTBOX_FULL, "Lines in which a tick admitted no ticket because the outbox was full"),
    (HAND_OVERS, "Ended terms of this replica, by reason: stopped, lost or refused"),
    (ESTIMATES, "Sampled tickets by result: within the range shown at the join, earlier or later"),
    (STALE, "How often the store rejected the epoch of this replica"),
    (SIGN_INS_FAILED, "Admin calls without the admin token, by reason: wrong or missing"),
    (RELAY_DROPPED, "Events dropped because Kafka is off, by type"),
    (RELAY_PUBLISHED, "Events that the broker has confirmed, by type"),
    (RELAY_FAILED, "Relay sessions that failed because the broker did not confirm"),
];

const GAUGES: [(&str, Unit, &str); 16] = [
    (IS_LEADER, Unit::Count, "1 while this replica leads, else 0"),
    (EPOCH, Unit::Count, "Epoch of this replica's latest term"),
    (TERM_SECONDS, Unit::Seconds, "Age of this replica's term; 0 on standbys"),
    (ACTIVE_LINES, Unit::Count, "Lines with tickets; 0 on standbys"),
    (RECOVERING_LINES, Unit::Count, "Lines that lost data and hold admission; 0 on standbys"),
    (HELD_LINES, Unit::Count, "Lines that hold admission, the outbox is full; 0 on standbys"),
    (BEACON_OVERDUE, Unit::Seconds, "Time since the beacon that a draw waits for was published"),
    (OPEN, Unit::Count, "1 while a line admits tickets, by item; 0 on standbys"),
    (WAITING, Unit::Count, "Waiting tickets, by item; 0 on standbys"),
    (ENTERED, Unit::Count, "Entries, by item; 0 on standbys"),
    (PACE_RATE, Unit::Count, "Rate of an adaptive pace in users per second, by item"),
    (PACE_ORIGIN_P95, Unit::Seconds, "95th percentile of the origin as the pace saw it, by item"),
    (OUTBOX, Unit::Count, "Events in the outbox that are not published yet; 0 on standbys"),
    (BLOCKLIST_INVALID, Unit::Count, "1 while the file of DAEGI_BLOCKLIST cannot be used"),
    (STORE_MEMORY, Unit::Bytes, "Used memory of the fullest server of the store"),
    (STORE_MEMORY_LIMIT, Unit::Bytes, "Memory limit of that server; 0 without a limit"),
];

/// Registers the help texts of all metrics.
pub fn describe() {
    describe_histogram!(TICK_SECONDS, Unit::Seconds, "Duration of ticks");
    for (name, help) in COUNTERS {
        describe_counter!(name, Unit::Count, help);
    }
    for (name, unit, help) in GAUGES {
        describe_gauge!(name, unit, help);
    }
}

#[cfg(test)]
mod tests {
    use ::metrics::{counter, gauge, histogram};
    use daegi_runtime::telemetry;

    use super::*;

    #[test]
    fn every_metric_has_a_help_text() {
        let constants = include_str!("metrics.rs").matches("\npub const ").count();
        assert_eq!(constants, COUNTERS.len() + GAUGES.len() + 1);
        // Installs the recorder.
        let _ = telemetry::render();
        describe();
        COUNTERS.iter().for_each(|(name, _)| counter!(*name).increment(0));
        GAUGES.iter().for_each(|(name, ..)| gauge!(*name).set(0));
        histogram!(TICK_SECONDS).record(0.0);
        let text = telemetry::render();
        let names = COUNTERS.iter().map(|(name, _)| *name);
        let names = names.chain(GAUGES.iter().map(|(name, ..)| *name)).chain([TICK_SECONDS]);
        for name in names {
            assert!(text.contains(&format!("# HELP {name} ")), "{name}");
        }
    }
}
