//! The brokers that every test runs against.

use std::time::Duration;

use daegi_domain::{Topic, Topics};
use daegi_kafka::{Brokers, EmbeddedBroker, Publisher};
use daegi_testkit::kafka_broker::Kafka;
use daegi_testkit::topic_reader::{TopicRecord, message_count};
use daegi_testkit::{KafkaLogin, TopicReader, TopicWriter, shared_kafka_or_skip};

pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A broker with topics of one test.
pub(crate) struct Broker {
    pub(crate) name: &'static str,
    /// Without TLS, for the tests themselves.
    pub(crate) at: String,
    /// As daegi connects.
    pub(crate) brokers: Brokers,
    pub(crate) topics: Topics,
    /// Stops with the value; a real one stops with the process.
    embedded: Option<EmbeddedBroker>,
    real: Option<&'static Kafka>,
}

impl Broker {
    /// The embedded one, and a real one if Java and Maven are installed.
    pub(crate) async fn each() -> Vec<Self> {
        let mut brokers = vec![Self::embedded()];
        if let Some(kafka) = shared_kafka_or_skip().await {
            let topics = kafka.create_topics().await.unwrap();
            let at = kafka.bootstrap();
            let connect = match KafkaLogin::chosen() {
                Some(login) => {
                    let (address, properties) = kafka.secured(login);
                    Brokers::from(&address).with_properties(Some(&properties))
                }
                None => Brokers::from(&at),
            };
            let (embedded, real) = (None, Some(kafka));
            brokers.push(Self { name: "real", at, brokers: connect, topics, embedded, real });
        }
        brokers
    }

    pub(crate) fn embedded() -> Self {
        let topics = Topics::default();
        let broker = EmbeddedBroker::start(&topics).unwrap();
        let at = broker.bootstrap_servers().to_owned();
        let brokers = Brokers::from(&at);
        Self { name: "embedded", at, brokers, topics, embedded: Some(broker), real: None }
    }

    pub(crate) fn pause(&self) {
        self.embedded.as_ref().unwrap().pause().unwrap();
    }

    pub(crate) fn resume(&self) {
        self.embedded.as_ref().unwrap().resume().unwrap();
    }

    /// Makes the dead letters of `item.changed` impossible to write.
    pub(crate) async fn deny_dead_letters(&self) {
        let topic = self.topics.dead_letter_name(Topic::ItemChanged);
        match (&self.embedded, self.real) {
            (Some(embedded), _) => embedded.deny(&topic).unwrap(),
            (None, Some(kafka)) => kafka.limit_topic(&topic, 1).await.unwrap(),
            (None, None) => unreachable!("every broker is one of them"),
        }
    }

    /// Accepts them again, up to this many bytes on a real broker.
    pub(crate) async fn permit_dead_letters(&self, bytes: u32) {
        let topic = self.topics.dead_letter_name(Topic::ItemChanged);
        match (&self.embedded, self.real) {
            (Some(embedded), _) => embedded.permit(&topic).unwrap(),
            (None, Some(kafka)) => kafka.limit_topic(&topic, bytes).await.unwrap(),
            (None, None) => unreachable!("every broker is one of them"),
        }
    }

    /// Writes to one partition of `item.changed`.
    pub(crate) async fn write(&self, partition: i32, bodies: &[impl AsRef<[u8]>]) {
        let topic = self.topics.name(Topic::ItemChanged);
        TopicWriter::new(&self.at).unwrap().write(topic, partition, bodies).await.unwrap();
    }

    pub(crate) fn publisher(&self) -> Publisher {
        Publisher::new(&self.brokers).unwrap().with_delivery_timeout(TEST_TIMEOUT)
    }

    /// The first messages of a topic, in the order of each partition.
    pub(crate) async fn read(&self, topic: Topic, count: usize) -> Vec<TopicRecord> {
        self.read_named(self.topics.name(topic), count).await
    }

    pub(crate) async fn read_named(&self, topic: &str, count: usize) -> Vec<TopicRecord> {
        TopicReader::open(&self.at, topic).await.unwrap().take(count).await
    }

    /// How many messages were written to a topic.
    pub(crate) async fn message_count(&self, topic: &str) -> i64 {
        message_count(&self.at, topic).await.unwrap()
    }
}
