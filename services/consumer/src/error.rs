//! Why a consumer cannot start, and why an event cannot be applied.

use daegi_domain::{IdError, TokenError};
use daegi_kafka::{Event, Poison, RetryLater, schema};
use serde::de::DeserializeOwned;

/// Why a consumer cannot start. Messages do not repeat their source, because callers print the
/// whole chain. The scheduler has the same two variants and more: a shared type would have to live in
/// `daegi-bootstrap`, which would link librdkafka into the api.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] daegi_store::Error),
    /// librdkafka rejects the configuration.
    #[error("--kafka (DAEGI_KAFKA)")]
    Kafka(#[from] daegi_kafka::Error),
}

impl Error {
    /// Returns whether only another configuration can help.
    #[must_use]
    pub fn is_misconfigured(&self) -> bool {
        match self {
            Self::Store(error) => error.is_misconfigured(),
            Self::Kafka(_) => true,
        }
    }
}

/// Why an event can never be applied: the message is invalid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidMessage {
    /// The body is not the JSON of this event.
    #[error("the body does not match the schema: {0}")]
    Body(#[from] serde_json::Error),
    /// A tombstone on a topic that needs a body.
    #[error("there is no body")]
    NoBody,
    /// A tombstone without a key.
    #[error("a tombstone's key must be an itemId")]
    NoKey,
    /// A tombstone whose key is not an item id.
    #[error("a tombstone's key must be an itemId: {0}")]
    Key(#[from] IdError),
    /// A tombstone whose header is not a version.
    #[error("a tombstone's version header must be a whole number")]
    Version,
    /// The token is forged or belongs to another item.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The token belongs to another user.
    #[error("the token belongs to another userId")]
    OtherUser,
}

impl From<InvalidMessage> for Poison {
    fn from(invalid: InvalidMessage) -> Self {
        Self(invalid.to_string())
    }
}

/// A store error is never caused by the message, so the message is retried, even if only an
/// operator can help.
pub(crate) fn retry_later(error: &daegi_store::Error) -> RetryLater {
    RetryLater(error.to_string())
}

/// Decodes a body. In debug builds it must also conform to the schema in `schemas/`.
pub(crate) fn decode<E: Event + DeserializeOwned>(body: &[u8]) -> Result<E, InvalidMessage> {
    let event = schema::decode::<E>(body)?;
    debug_assert_eq!(schema::validate::<E>(body), Ok(()), "accepted against the schema");
    Ok(event)
}
