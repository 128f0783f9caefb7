use daegi_runtime::Config;

/// How much one pod holds for its clients.
#[derive(Debug, Clone, Copy)]
pub struct ApiLimits {
    /// Streams and sockets together; more are refused with 503.
    pub streams: usize,
    /// Long polls; more are answered immediately.
    pub long_polls: usize,
    /// Held connections of one ticket, of all kinds together. A newer one ends the oldest.
    pub held_per_ticket: usize,
    /// Lines in view; the line that no ticket asked for the longest makes room.
    pub cached_lines: usize,
}

impl Default for ApiLimits {
    fn default() -> Self {
        Self { streams: 15_000, long_polls: 15_000, held_per_ticket: 3, cached_lines: 4_096 }
    }
}

impl From<&Config> for ApiLimits {
    fn from(config: &Config) -> Self {
        Self {
            streams: config.max_streams,
            long_polls: config.max_long_polls,
            held_per_ticket: config.max_held_per_ticket,
            cached_lines: config.max_cached_lines,
        }
    }
}
