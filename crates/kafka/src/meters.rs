//! The names of all metrics of the consumer loop, each with what it counts.

/// Messages whose effect is there, by topic.
pub const APPLIED: &str = "daegi_consumer_applied_total";
/// Messages that went to the dead letters, by topic.
pub const DEAD_LETTERS: &str = "daegi_consumer_dead_letters_total";
/// Attempts that had to be repeated because something was away, by topic.
pub const RETRIES: &str = "daegi_consumer_retries_total";
/// Messages that this replica has not read yet, by topic.
pub const LAG: &str = "daegi_consumer_lag";
/// Seconds since this replica read the oldest record whose effect is still missing, by topic and partition;
/// 0 when there is none, and for partitions that another replica has.
pub const OLDEST_UNAPPLIED: &str = "daegi_consumer_oldest_unapplied_seconds";
