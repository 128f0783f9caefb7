//! A broker with TLS and users. `make test-tls` runs all other suites over each login, too.

use std::time::Duration;

use daegi_domain::Topics;
use daegi_kafka::{Brokers, Publisher, Record, TopicMetadata};
use daegi_testkit::{Kafka, KafkaLogin, shared_kafka_or_skip};

fn brokers(kafka: &Kafka, login: KafkaLogin) -> Brokers {
    let (address, properties) = kafka.secured(login);
    Brokers::from(&address).with_properties(Some(&properties))
}

async fn publish(publisher: &Publisher, topics: &Topics) -> daegi_kafka::Result<()> {
    let topic = topics.name(daegi_domain::Topic::OrderClosed);
    publisher.publish(&[Record::raw(topic, "concert", Some(b"x"))]).await
}

#[tokio::test]
async fn every_login_publishes_and_reads_metadata() {
    let Some(kafka) = shared_kafka_or_skip().await else { return };
    let topics = kafka.create_topics().await.unwrap();
    let logins =
        [KafkaLogin::Plain, KafkaLogin::Scram, KafkaLogin::OauthBearer, KafkaLogin::Mutual];
    for login in logins {
        let brokers = brokers(kafka, login);
        publish(&Publisher::new(&brokers).unwrap(), &topics).await.unwrap();
        let metadata = TopicMetadata::new(&brokers).unwrap();
        let topic = topics.name(daegi_domain::Topic::OrderClosed);
        assert_eq!(metadata.partitions(topic).await.unwrap(), Some(4), "{login:?}");
    }
}

/// The publisher reads its files again after a failure.
#[tokio::test]
async fn a_corrected_password_is_used_without_a_restart() {
    let Some(kafka) = shared_kafka_or_skip().await else { return };
    let topics = kafka.create_topics().await.unwrap();
    let (address, correct) = kafka.secured(KafkaLogin::Scram);
    let correct = std::fs::read_to_string(correct).unwrap();
    let (password, file) =
        (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let lines = correct.lines().filter(|line| !line.starts_with("sasl.password"));
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    let path = password.path().display();
    std::fs::write(file.path(), format!("{lines}sasl.password=file:{path}\n")).unwrap();
    std::fs::write(password.path(), "wrong").unwrap();
    let brokers = Brokers::from(&address).with_properties(Some(file.path()));
    let publisher = Publisher::new(brokers).unwrap().with_delivery_timeout(Duration::from_secs(5));
    publish(&publisher, &topics).await.unwrap_err();
    std::fs::write(password.path(), "password-of-the-tests").unwrap();
    // The failure of this call creates the next producer, which reads the file.
    publish(&publisher, &topics).await.unwrap_err();
    publish(&publisher, &topics).await.unwrap();
}
