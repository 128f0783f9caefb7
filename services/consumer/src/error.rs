//! Why a consumer cannot start, and why an event has no effect.

use daegi_domain::{IdError, TokenError};
use daegi_kafka::{Event, Failure, Halt, Incoming, schema};
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

/// Why an event has no effect.
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
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] daegi_store::Error),
}

impl From<Refusal> for Failure {
    /// Whatever is wrong with the store is not the message's fault, so it waits, also where only
    /// an operator can help. Everything else is the message, which no waiting makes better.
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            Refusal::Store(_) => Self::Transient(text),
            Refusal::Body(_)
            | Refusal::NoBody
            | Refusal::NoKey
            | Refusal::Key(_)
            | Refusal::Version
            | Refusal::Token(_)
            | Refusal::OtherUser => Self::Poison(text),
        }
    }
}

/// A body as an event. What we take must be what other teams read in `schemas/`.
pub(crate) fn read<E: Event + DeserializeOwned>(body: &[u8]) -> Result<E, Refusal> {
    let event = schema::read::<E>(body)?;
    debug_assert_eq!(schema::accepts::<E>(body), Ok(()), "accepted against the schema");
    Ok(event)
}

/// What messages say, up to the first one that says nothing we understand.
pub(crate) fn understood<T>(
    messages: &[Incoming],
    read: impl Fn(&Incoming) -> Result<T, Refusal>,
) -> (Vec<T>, Option<Halt>) {
    let mut meanings = Vec::with_capacity(messages.len());
    for message in messages {
        match read(message) {
            Ok(meaning) => meanings.push(meaning),
            Err(refusal) => {
                let halt = Halt { done: meanings.len(), why: refusal.into() };
                return (meanings, Some(halt));
            }
        }
    }
    (meanings, None)
}
