//! How many partitions a topic has.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::types::RDKafkaRespErr;
use tokio::sync::oneshot;

use crate::client::QuietContext;
use crate::{Brokers, Error, Result};

/// Timeout of one call to the broker.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Reads the metadata of topics. It creates no topic, also where the broker creates topics on demand.
pub struct TopicMetadata {
    client: Arc<BaseConsumer<QuietContext>>,
}

impl TopicMetadata {
    /// Creates a client. The brokers need not be reachable yet.
    ///
    /// # Errors
    /// If librdkafka rejects the addresses, or the properties cannot be used.
    pub fn new(brokers: impl Into<Brokers>) -> Result<Self> {
        let mut config = brokers.into().client_config(&[])?;
        config.set("allow.auto.create.topics", "false");
        Ok(Self { client: Arc::new(config.create_with_context(QuietContext)?) })
    }

    /// Returns how many partitions a topic has. `None` if there is no such topic, or if this client may not
    /// read it.
    ///
    /// # Errors
    /// If no broker replies in time, or if the topic is being created.
    pub async fn partitions(&self, topic: &str) -> Result<Option<usize>> {
        let (client, topic) = (Arc::clone(&self.client), topic.to_owned());
        let (done, reply) = oneshot::channel();
        // The call waits for the broker, and the runtime would wait for a blocking task before it ends.
        std::thread::spawn(move || {
            // Runs the callback that reads a token for OAUTHBEARER; there are no messages.
            drop(client.poll(Duration::ZERO));
            let metadata = client.fetch_metadata(Some(&topic), TIMEOUT);
            // The receiver is dropped only when the process ends.
            let _ = done.send(metadata.map(|metadata| {
                let topic = metadata.topics().first();
                topic.map(|topic| (topic.error(), topic.partitions().len()))
            }));
        });
        match reply.await.map_err(|_| Error::MetadataUnavailable)?? {
            Some((None, partitions)) if partitions > 0 => Ok(Some(partitions)),
            Some((Some(error), _)) if is_final(error) => Ok(None),
            _ => Err(Error::MetadataUnavailable),
        }
    }
}

fn is_final(error: RDKafkaRespErr) -> bool {
    matches!(
        error,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART
            | RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED
    )
}

impl std::fmt::Debug for TopicMetadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TopicMetadata").finish_non_exhaustive()
    }
}
