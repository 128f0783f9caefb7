//! The settings of all lines.

/// The settings of all lines. Operators change them at runtime; all replicas read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Admissions per line and tick; 0 pauses all lines.
    pub token_count_to_move: u32,
    /// Length of a tick in milliseconds.
    pub tick_ms: u32,
}

impl Settings {
    /// The ticks that an operator may set, in milliseconds.
    pub const TICK_MS: std::ops::RangeInclusive<u32> = 50..=60_000;
    /// The largest quota that an operator may set.
    pub const MAX_TOKEN_COUNT: u32 = 1_000_000;
}
