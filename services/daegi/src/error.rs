use daegi_storefront::demo;

/// Errors at the start. After the start, every role retries.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A role cannot start.
    #[error(transparent)]
    Role(#[from] daegi_scheduler::Error),
    /// The demo cannot start.
    #[error("--demo (DAEGI_DEMO)")]
    Demo(#[from] demo::Error),
}

impl Error {
    /// Whether the configuration has to be changed; a restart does not help.
    #[must_use]
    pub fn is_misconfigured(&self) -> bool {
        match self {
            Self::Role(error) => error.is_misconfigured(),
            Self::Demo(demo::Error::Kafka(_) | demo::Error::Orders(_)) => true,
            Self::Demo(demo::Error::Listen(_)) => false,
        }
    }
}
