use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// What this crate answers.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something did not reach Kafka, or did not come out of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// librdkafka says so.
    #[error("kafka: {0}")]
    Kafka(#[from] KafkaError),
    /// The broker did not confirm in time. It may have the records or not.
    #[error("the broker has not confirmed within {0:?}")]
    Unconfirmed(std::time::Duration),
    /// The producer was replaced while it waited, because other records got no answer.
    #[error("the producer was given up before the broker confirmed")]
    GivenUp,
    /// A client without the embedded broker it was asked for.
    #[error("librdkafka has no embedded broker")]
    NoEmbedded,
    /// An event that cannot be written as JSON.
    #[error("an event cannot be written")]
    Body(#[from] serde_json::Error),
}

impl Error {
    /// Whether the producer or the broker refuses a record because of its size.
    pub(crate) fn is_too_large(&self) -> bool {
        let Self::Kafka(error) = self else { return false };
        error.rdkafka_error_code() == Some(RDKafkaErrorCode::MessageSizeTooLarge)
    }
}
