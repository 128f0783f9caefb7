//! The brokers that every promise must hold on.

use std::time::Duration;

use daegi_domain::{Topic, Topics};
use daegi_kafka::{EmbeddedBroker, Publisher};
use daegi_testkit::kafka_reader::{Found, written};
use daegi_testkit::{Reader, shared_kafka_or_loud};

pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A broker, with topics that are this test's own.
pub(crate) struct Broker {
    pub(crate) name: &'static str,
    pub(crate) at: String,
    pub(crate) topics: Topics,
    /// Ends with the value; a real one ends with the process.
    embedded: Option<EmbeddedBroker>,
}

impl Broker {
    /// The embedded one, and a real one where Java and Maven are there.
    pub(crate) async fn each() -> Vec<Self> {
        let mut brokers = vec![Self::embedded()];
        if let Some(kafka) = shared_kafka_or_loud().await {
            let topics = kafka.own_topics().await.unwrap();
            brokers.push(Self { name: "real", at: kafka.bootstrap(), topics, embedded: None });
        }
        brokers
    }

    pub(crate) fn embedded() -> Self {
        let topics = Topics::default();
        let broker = EmbeddedBroker::start(&topics).unwrap();
        let at = broker.bootstrap_servers().to_owned();
        Self { name: "embedded", at, topics, embedded: Some(broker) }
    }

    pub(crate) fn pause(&self) {
        self.embedded.as_ref().unwrap().pause().unwrap();
    }

    pub(crate) fn resume(&self) {
        self.embedded.as_ref().unwrap().resume().unwrap();
    }

    pub(crate) fn publisher(&self) -> Publisher {
        Publisher::new(&self.at).unwrap().with_patience(SOON)
    }

    /// The first messages of a topic, in the order of each partition.
    pub(crate) async fn read(&self, topic: Topic, count: usize) -> Vec<Found> {
        self.read_named(self.topics.name(topic), count).await
    }

    pub(crate) async fn read_named(&self, topic: &str, count: usize) -> Vec<Found> {
        Reader::open(&self.at, topic).await.unwrap().take(count).await
    }

    /// How many messages were written to a topic.
    pub(crate) async fn written(&self, topic: &str) -> i64 {
        written(&self.at, topic).await.unwrap()
    }
}
