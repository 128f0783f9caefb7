//! Limits of the whole store, the same in the whole fleet.

/// When a store refuses new tickets. Existing tickets are served in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Share of Redis' `maxmemory`, in percent, from which on new tickets are refused. It
    /// does not apply to a Redis without `maxmemory` and to the memory store.
    pub memory_high_percent: u8,
    /// How many tickets may wait in all lines together.
    pub max_waiting: u64,
    /// How often one user may leave one line within ten minutes and still join it again; 0 is no
    /// limit.
    pub leave_limit: u32,
    /// Accept a Redis whose `maxmemory-policy` evicts keys.
    pub allow_eviction: bool,
}

impl Default for StoreLimits {
    /// 90 % leaves memory for the writes of existing tickets. Five million waiting tickets take
    /// about 1 GB of Redis and are five times the largest sale daegi is measured with.
    fn default() -> Self {
        Self {
            memory_high_percent: 90,
            max_waiting: 5_000_000,
            leave_limit: 5,
            allow_eviction: false,
        }
    }
}
