use std::sync::Arc;

/// The result of a store call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store call failed. A refusal by a rule of the line is an outcome, not an error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The store is unreachable or does not reply in time.
    #[error("the store is unavailable: {0}")]
    Unavailable(Arc<str>),
    /// The store URL is invalid.
    #[error("the store URL is not valid: {0}")]
    InvalidUrl(Arc<str>),
    /// The server is too old to run the scripts.
    #[error("redis {found} is too old, {needed} or newer is needed")]
    UnsupportedVersion {
        /// The version of the server.
        found: Arc<str>,
        /// The oldest supported version.
        needed: &'static str,
    },
    /// The server may delete keys when it runs out of memory.
    #[error(
        "redis would evict keys at its memory limit (maxmemory-policy {policy}) and lose tickets; set maxmemory-policy noeviction, or --allow-eviction to accept the loss"
    )]
    Eviction {
        /// The policy of the server.
        policy: Arc<str>,
    },
    /// The store was created with another number of partitions.
    #[error(
        "the store has {stored} partitions, this process was started with {given}; set --partitions {stored}"
    )]
    PartitionMismatch {
        /// The number in the store.
        stored: u16,
        /// The number that this process was configured with.
        given: u16,
    },
    /// The store holds data that this version cannot read.
    #[error("unreadable data in the store: {0}")]
    Corrupt(Arc<str>),
    /// Another leader's term has begun; nothing was changed.
    #[error("epoch {0} does not lead any more")]
    StaleEpoch(u64),
}

impl Error {
    /// Whether a retry can help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Whether only another configuration can help.
    pub fn is_misconfigured(&self) -> bool {
        matches!(
            self,
            Self::InvalidUrl(_)
                | Self::UnsupportedVersion { .. }
                | Self::Eviction { .. }
                | Self::PartitionMismatch { .. }
        )
    }

    pub(crate) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt(what.into().into())
    }
}
