//! Configuration shared by all Kafka clients of this process.

use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;
use rdkafka::producer::{DeliveryResult, ProducerContext};

/// Logs librdkafka's own messages at debug level: it repeats them every second while a broker is
/// unavailable, and the caller logs the outage once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuietContext;

impl ClientContext for QuietContext {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(target: "librdkafka", facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "librdkafka", %error, reason);
    }
}

/// For clients that publish nothing, such as the owner of the embedded broker.
impl ProducerContext for QuietContext {
    type DeliveryOpaque = ();

    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}

pub(crate) fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("client.id", "daegi")
        // The default grows to 10 s, which would delay publishing after the broker is back.
        .set("reconnect.backoff.max.ms", "1000");
    config
}
