use std::sync::Arc;

/// What a store answers.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store could not answer. Rules of the line are never errors; they are answers.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The store cannot be reached or does not answer in time.
    #[error("the store does not answer: {0}")]
    Unavailable(Arc<str>),
    /// The address makes no sense.
    #[error("the store's address is not valid: {0}")]
    Address(Arc<str>),
    /// Too old to run the scripts.
    #[error("redis {found} is too old, {needed} or newer is needed")]
    Version {
        /// What the server says it is.
        found: Arc<str>,
        /// What is needed.
        needed: &'static str,
    },
    /// The server may delete keys when it runs out of memory.
    #[error(
        "redis would evict keys at its memory limit (maxmemory-policy {policy}) and lose tickets; set maxmemory-policy noeviction, or --allow-eviction to accept the loss"
    )]
    Eviction {
        /// What the server is configured with.
        policy: Arc<str>,
    },
    /// Started with another number of partitions than the stored lines use.
    #[error("the store has {stored} partitions, this process was started with {given}")]
    Partitions {
        /// What the store was created with.
        stored: u16,
        /// What this process was told.
        given: u16,
    },
    /// Something in the store is not what this version writes.
    #[error("the store holds something unexpected: {0}")]
    Corrupt(Arc<str>),
    /// Another leader has taken over; nothing was changed.
    #[error("epoch {0} does not lead any more")]
    StaleEpoch(u64),
}

impl Error {
    /// Whether waiting may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Whether only another configuration can help.
    pub fn is_misconfigured(&self) -> bool {
        matches!(
            self,
            Self::Address(_)
                | Self::Version { .. }
                | Self::Eviction { .. }
                | Self::Partitions { .. }
        )
    }

    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt(what.into().into())
    }
}
