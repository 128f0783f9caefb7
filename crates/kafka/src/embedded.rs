//! A broker inside the process: librdkafka's mock cluster. It speaks the Kafka protocol on
//! loopback, so `kcat` and other clients can use it. Its data is lost with the process.

use daegi_domain::{Topic, Topics};
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::types::RDKafkaRespErr;

use crate::client::QuietContext;
use crate::{Error, Result};

/// Partitions per topic: enough to show that order is per key, few enough to inspect.
const PARTITIONS: i32 = 3;

/// The id of the only broker.
const BROKER: i32 = 1;

/// A running broker; dropping it stops the broker.
pub struct EmbeddedBroker {
    /// The client that owns the cluster: librdkafka's handle of a cluster is not `Send`, the client
    /// is.
    owner: BaseProducer<QuietContext>,
    bootstrap_servers: String,
}

impl std::fmt::Debug for EmbeddedBroker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedBroker")
            .field("at", &self.bootstrap_servers)
            .finish_non_exhaustive()
    }
}

impl EmbeddedBroker {
    /// Starts a broker on a free port, with all topics and the dead-letter topics of inbound ones.
    ///
    /// # Errors
    /// If librdkafka cannot start it.
    pub fn start(topics: &Topics) -> Result<Self> {
        let mut config = ClientConfig::new();
        config.set("test.mock.num.brokers", "1");
        let owner: BaseProducer<QuietContext> = config.create_with_context(QuietContext)?;
        let cluster = owner.client().mock_cluster().ok_or(Error::EmbeddedUnavailable)?;
        for topic in Topic::ALL {
            cluster.create_topic(topics.name(topic), PARTITIONS, 1)?;
        }
        for topic in Topic::INBOUND {
            cluster.create_topic(&topics.dead_letter_name(topic), PARTITIONS, 1)?;
        }
        let bootstrap_servers = cluster.bootstrap_servers();
        drop(cluster);
        Ok(Self { owner, bootstrap_servers })
    }

    /// Returns the address for clients.
    #[must_use]
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }

    /// Stops replying, as a broker does during a restart. For tests.
    ///
    /// # Errors
    /// If librdkafka refuses.
    pub fn pause(&self) -> Result<()> {
        Ok(self.cluster()?.broker_down(BROKER)?)
    }

    /// Replies again.
    ///
    /// # Errors
    /// If librdkafka refuses.
    pub fn resume(&self) -> Result<()> {
        Ok(self.cluster()?.broker_up(BROKER)?)
    }

    /// Makes a topic unusable for clients that connect from now on, as a missing permission does.
    /// For tests.
    ///
    /// # Errors
    /// If librdkafka refuses.
    pub fn deny(&self, topic: &str) -> Result<()> {
        let denied = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
        Ok(self.cluster()?.topic_error(topic, denied)?)
    }

    /// Reverts [`EmbeddedBroker::deny`].
    ///
    /// # Errors
    /// If librdkafka refuses.
    pub fn permit(&self, topic: &str) -> Result<()> {
        let permitted = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR;
        Ok(self.cluster()?.topic_error(topic, permitted)?)
    }

    fn cluster(&self) -> Result<MockCluster<'_, QuietContext>> {
        self.owner.client().mock_cluster().ok_or(Error::EmbeddedUnavailable)
    }
}
