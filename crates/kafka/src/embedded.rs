//! A broker inside the process: librdkafka's mock cluster. It speaks the real protocol on
//! loopback, so `kcat` and everybody else can talk to it, and it forgets everything with the
//! process.

use daegi_domain::{Topic, Topics};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::types::RDKafkaRespErr;

use crate::client::{self, Quiet};
use crate::{Error, Result};

/// Enough to see that order is per key, few enough to read.
const PARTITIONS: i32 = 3;

/// The id of the only broker.
const BROKER: i32 = 1;

/// A running broker; it ends when this is dropped.
pub struct EmbeddedBroker {
    /// librdkafka's handle of a cluster cannot be sent between threads; a client that owns one can.
    owner: BaseProducer<Quiet>,
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
    /// Starts a broker on a free port, with all topics and their dead letters.
    ///
    /// # Errors
    /// If librdkafka cannot start it.
    pub fn start(topics: &Topics) -> Result<Self> {
        let mut config = client::config("");
        config.remove("bootstrap.servers");
        config.set("test.mock.num.brokers", "1");
        let owner: BaseProducer<Quiet> = config.create_with_context(Quiet)?;
        let cluster = owner.client().mock_cluster().ok_or(Error::NoEmbedded)?;
        for topic in Topic::ALL {
            cluster.create_topic(topics.name(topic), PARTITIONS, 1)?;
        }
        for topic in Topic::IN {
            cluster.create_topic(&topics.dead_letters(topic), PARTITIONS, 1)?;
        }
        let bootstrap_servers = cluster.bootstrap_servers();
        drop(cluster);
        Ok(Self { owner, bootstrap_servers })
    }

    /// Where clients find it.
    #[must_use]
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }

    /// Stops answering, as a broker does that is restarted. For tests.
    ///
    /// # Errors
    /// If librdkafka refuses.
    pub fn pause(&self) -> Result<()> {
        Ok(self.cluster()?.broker_down(BROKER)?)
    }

    /// Answers again.
    ///
    /// # Errors
    /// If librdkafka refuses.
    pub fn resume(&self) -> Result<()> {
        Ok(self.cluster()?.broker_up(BROKER)?)
    }

    /// Makes a topic unusable for clients that connect from now on, as a missing permission does. For
    /// tests.
    ///
    /// # Errors
    /// If librdkafka refuses.
    pub fn deny(&self, topic: &str) -> Result<()> {
        let denied = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
        Ok(self.cluster()?.topic_error(topic, denied)?)
    }

    /// Takes a [`EmbeddedBroker::deny`] back.
    ///
    /// # Errors
    /// If librdkafka refuses.
    pub fn permit(&self, topic: &str) -> Result<()> {
        let permitted = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR;
        Ok(self.cluster()?.topic_error(topic, permitted)?)
    }

    fn cluster(&self) -> Result<MockCluster<'_, Quiet>> {
        self.owner.client().mock_cluster().ok_or(Error::NoEmbedded)
    }
}
