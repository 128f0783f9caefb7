use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::brokers::PropertiesError;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// Why publishing or consuming failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of librdkafka.
    #[error("kafka: {0}")]
    Kafka(#[from] KafkaError),
    /// The file of properties cannot be used.
    #[error(transparent)]
    Properties(#[from] PropertiesError),
    /// The broker did not confirm in time. The records may have arrived or not.
    #[error("the broker did not confirm within {0:?}")]
    Unconfirmed(std::time::Duration),
    /// The producer accepts no more records, because an earlier one was rejected.
    #[error("publishing aborted before the broker confirmed")]
    Aborted,
    /// librdkafka was built without its mock cluster.
    #[error("the embedded broker is unavailable in this build")]
    EmbeddedUnavailable,
    /// The broker does not know the leaders of a topic yet.
    #[error("the broker did not return the partitions of the topic")]
    MetadataUnavailable,
    /// An event that cannot be serialized.
    #[error("an event cannot be serialized as JSON")]
    Body(#[from] serde_json::Error),
}

impl Error {
    /// Returns whether the producer or the broker rejected a record because of its size.
    pub(crate) fn is_too_large(&self) -> bool {
        let Self::Kafka(error) = self else { return false };
        error.rdkafka_error_code() == Some(RDKafkaErrorCode::MessageSizeTooLarge)
    }
}
