use crate::SeedError;

/// Why a scheduler cannot start. Once it runs, it retries. Messages do not repeat their source,
/// because callers print the whole chain.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] daegi_store::Error),
    /// librdkafka rejects the configuration.
    #[error("--kafka (DAEGI_KAFKA)")]
    Kafka(#[from] daegi_kafka::Error),
    /// The relays of the beacon cannot be used.
    #[error("--drand-urls (DAEGI_DRAND_URLS)")]
    Relay(#[from] daegi_beacon::AuthoritiesError),
    /// The seed file cannot be used.
    #[error("--seed-items (DAEGI_SEED_ITEMS)")]
    Seed(#[from] SeedError),
}

impl Error {
    /// Returns whether only another configuration can help.
    #[must_use]
    pub fn is_misconfigured(&self) -> bool {
        match self {
            Self::Store(error) => error.is_misconfigured(),
            Self::Seed(_) | Self::Kafka(_) | Self::Relay(_) => true,
        }
    }
}
