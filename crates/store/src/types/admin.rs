use daegi_domain::Millis;

/// How much memory a Redis server uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Bytes in use.
    pub used: u64,
    /// Bytes it may use; 0 if it has no limit.
    pub limit: u64,
    /// Bytes from which on new tickets are refused; 0 if it has no limit.
    pub high: u64,
}

impl MemoryUsage {
    /// Whether new tickets are refused.
    #[must_use]
    pub fn is_high(&self) -> bool {
        self.limit > 0 && self.used >= self.high
    }
}

/// What became of an operator that was to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOperator {
    /// It is stored.
    Stored,
    /// Another operator has this name.
    NameTaken,
    /// As many operators as allowed are stored.
    LimitReached,
}

/// The last heartbeat of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatRecord {
    /// The process.
    pub process: String,
    /// What it wrote: JSON of [`daegi_domain::Heartbeat`].
    pub payload: String,
    /// When it was written, by the clock of the process.
    pub at: Millis,
}
