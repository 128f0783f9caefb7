use crate::circle;

/// Why daegi cannot start. Once it runs, it waits for whatever it misses.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// One of the roles cannot.
    #[error(transparent)]
    Role(#[from] daegi_scheduler::Error),
    /// The demo cannot.
    #[error("--demo (DAEGI_DEMO)")]
    Demo(#[from] circle::Error),
}

impl Error {
    /// Whether only another configuration can help.
    #[must_use]
    pub fn is_misconfigured(&self) -> bool {
        match self {
            Self::Role(error) => error.is_misconfigured(),
            Self::Demo(circle::Error::Kafka(_) | circle::Error::Orders(_)) => true,
            Self::Demo(circle::Error::Listen(_)) => false,
        }
    }
}
