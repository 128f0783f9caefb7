//! Why a consumer cannot start, and why an event has no effect.

use daegi_domain::{IdError, TokenError};
use daegi_kafka::{Event, Missing, Poison, schema};
use serde::de::DeserializeOwned;

/// Why a consumer cannot start. Sources are not repeated in messages: whoever prints one prints
/// its chain.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] daegi_store::Error),
    /// librdkafka refuses what it was told.
    #[error("--kafka (DAEGI_KAFKA)")]
    Kafka(#[from] daegi_kafka::Error),
}

impl Error {
    /// Whether only another configuration can help.
    #[must_use]
    pub fn is_misconfigured(&self) -> bool {
        match self {
            Self::Store(error) => error.is_misconfigured(),
            Self::Kafka(_) => true,
        }
    }
}

/// Why an event never has an effect: the message is wrong, which no waiting makes better.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Not the JSON of this event.
    #[error("the body is not what the schema says: {0}")]
    Body(#[from] serde_json::Error),
    /// A topic that needs a body.
    #[error("there is no body")]
    NoBody,
    /// A tombstone without an item.
    #[error("a tombstone's key must be an itemId")]
    NoKey,
    /// A tombstone whose key is no item.
    #[error("a tombstone's key must be an itemId: {0}")]
    Key(#[from] IdError),
    /// A tombstone whose header is no version.
    #[error("a tombstone's version header must be a whole number")]
    Version,
    /// The token was not issued here, or for another item.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token is somebody else's.
    #[error("the token belongs to another userId")]
    OtherUser,
}

impl From<Refusal> for Poison {
    fn from(refusal: Refusal) -> Self {
        Self(refusal.to_string())
    }
}

/// Whatever is wrong with the store is not a message's fault, so it waits, also where only an
/// operator can help.
pub(crate) fn missing(error: &daegi_store::Error) -> Missing {
    Missing(error.to_string())
}

/// A body as an event. What we take must be what other teams read in `schemas/`.
pub(crate) fn read<E: Event + DeserializeOwned>(body: &[u8]) -> Result<E, Refusal> {
    let event = schema::read::<E>(body)?;
    debug_assert_eq!(schema::accepts::<E>(body), Ok(()), "accepted against the schema");
    Ok(event)
}
