//! The metrics of the consumer loop. Each constant has its help text in [`describe`].
//!
//! The scheduler registers its own metrics with the same lines: a shared function would belong to
//! `daegi-runtime`, on which this crate must not depend.

use ::metrics::{Unit, describe_counter, describe_gauge};

/// Messages that were applied, by `topic`.
pub const APPLIED: &str = "daegi_consumer_applied_total";
/// Messages that were written to the dead-letter topic, by `topic`.
pub const DEAD_LETTERS: &str = "daegi_consumer_dead_letters_total";
/// Attempts that failed and were retried, by `topic`, because the store or the dead-letter topic was
/// unavailable or the store had no data of the item.
pub const RETRIES: &str = "daegi_consumer_retries_total";
/// Messages of the assigned partitions that this replica has not read yet, by `topic`.
pub const LAG: &str = "daegi_consumer_lag";
/// Seconds since this replica read the oldest record that is not applied yet, by `topic` and `partition`;
/// 0 when there is none, and for partitions that are assigned to another replica.
pub const OLDEST_UNAPPLIED: &str = "daegi_consumer_oldest_unapplied_seconds";

const COUNTERS: [(&str, &str); 3] = [
    (APPLIED, "Messages that were applied to the store, by topic"),
    (DEAD_LETTERS, "Undecodable messages that were written to the dead-letter topic, by topic"),
    (RETRIES, "Failed attempts that were retried, by topic"),
];

const GAUGES: [(&str, Unit, &str); 2] = [
    (LAG, Unit::Count, "Messages of the assigned partitions that were not read yet, by topic"),
    (OLDEST_UNAPPLIED, Unit::Seconds, "Age of the oldest unapplied record, by topic and partition"),
];

/// Registers the help texts of all metrics.
pub fn describe() {
    for (name, help) in COUNTERS {
        describe_counter!(name, Unit::Count, help);
    }
    for (name, unit, help) in GAUGES {
        describe_gauge!(name, unit, help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_help_text() {
        let constants = include_str!("metrics.rs").matches("\npub const ").count();
        assert_eq!(constants, COUNTERS.len() + GAUGES.len());
    }
}
