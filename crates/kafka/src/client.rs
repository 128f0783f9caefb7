//! What every client of this process has in common.

use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;
use rdkafka::producer::{DeliveryResult, ProducerContext};

/// Keeps librdkafka's own words for those who debug: it repeats itself every second while a
/// broker is away, and whoever waits for the broker complains once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, _: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(target: "librdkafka", facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(target: "librdkafka", %error, reason);
    }
}

/// For clients that publish nothing, such as the owner of the embedded broker.
impl ProducerContext for Quiet {
    type DeliveryOpaque = ();

    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}

pub(crate) fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("client.id", "daegi")
        // The default grows to 10 s, and everybody would wait that long for a broker that is back.
        .set("reconnect.backoff.max.ms", "1000");
    config
}
