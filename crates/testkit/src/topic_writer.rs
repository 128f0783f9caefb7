//! A producer with larger limits than daegi's, as another team may run it.

use std::time::Duration;

use anyhow::anyhow;
use rdkafka::ClientConfig;
use rdkafka::producer::{FutureProducer, FutureRecord};

/// How long a busy broker may take to confirm.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Writes records to chosen partitions, up to 2,000,000 bytes each.
pub struct TopicWriter(FutureProducer);

impl TopicWriter {
    /// Creates a writer.
    ///
    /// # Errors
    /// If librdkafka rejects the address.
    pub fn new(brokers: &str) -> anyhow::Result<Self> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", brokers).set("message.max.bytes", "2000000");
        Ok(Self(config.create()?))
    }

    /// Writes bodies in order and returns when all are confirmed.
    ///
    /// # Errors
    /// If the broker does not confirm one of them.
    pub async fn write(
        &self,
        topic: &str,
        partition: i32,
        bodies: &[impl AsRef<[u8]>],
    ) -> anyhow::Result<()> {
        self.write_at(topic, partition, bodies, None).await
    }

    /// The same with this timestamp in unix milliseconds; `None` is now.
    ///
    /// # Errors
    /// If the broker does not confirm one of them.
    pub async fn write_at(
        &self,
        topic: &str,
        partition: i32,
        bodies: &[impl AsRef<[u8]>],
        timestamp: Option<i64>,
    ) -> anyhow::Result<()> {
        let mut confirmations = Vec::with_capacity(bodies.len());
        for body in bodies {
            // A compacted topic rejects records without a key.
            let mut record =
                FutureRecord::to(topic).partition(partition).key("writer").payload(body.as_ref());
            record.timestamp = timestamp;
            let sent = self.0.send_result(record);
            confirmations.push(sent.map_err(|(error, _)| error)?);
        }
        for confirmation in confirmations {
            let delivered = tokio::time::timeout(WRITE_TIMEOUT, confirmation).await??;
            delivered.map_err(|(error, _)| anyhow!(error))?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for TopicWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TopicWriter").finish_non_exhaustive()
    }
}
