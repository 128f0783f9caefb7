//! Large poison on a real broker, while the dead-letter topic rejects writes and afterwards.

use std::process::{Command, Stdio};
use std::time::Duration;

use daegi_domain::{ItemChanged, Topic, Topics};
use daegi_store::{ItemStore, RedisStore};
use daegi_testkit::{
    ChildProcess, TopicReader, TopicWriter, eventually, free_port, redis_or_skip,
    shared_kafka_or_skip,
};

use crate::harness::{PARTITIONS, SETTINGS, TEST_TIMEOUT, changed, item};

const LARGE: usize = 1_020_000;

/// What a broker accepts by default (`message.max.bytes`).
const DEFAULT_LIMIT: u32 = 1_048_588;

/// A consumer process whose metrics and log can be read.
struct Consumer {
    address: String,
    log: tempfile::NamedTempFile,
    _process: ChildProcess,
}

impl Consumer {
    fn start(redis: &str, kafka: &str, topics: &Topics) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let child = Command::new(env!("CARGO_BIN_EXE_daegi-consumer"))
            .env_clear()
            .env("DAEGI_STORE", redis)
            .env("DAEGI_PARTITIONS", PARTITIONS.to_string())
            .env("DAEGI_KAFKA", kafka)
            .env("DAEGI_TOPIC_ITEM_CHANGED", topics.name(Topic::ItemChanged))
            .env("DAEGI_TOPIC_ORDER_CLOSED", topics.name(Topic::OrderClosed))
            .env("DAEGI_CONSUMER_GROUP", topics.name(Topic::ItemChanged))
            .env("DAEGI_INTERNAL_ADDR", &address)
            .env("DAEGI_TICKET_SECRETS", "1:000102030405060708090a0b0c0d0e0f")
            .stdout(log.reopen().unwrap())
            .stderr(log.reopen().unwrap())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { address, log, _process: ChildProcess::from(child) }
    }

    async fn is_ready(&self) -> bool {
        let answer = reqwest::get(format!("http://{}/readyz", self.address)).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// The age of the oldest unapplied record of `item.changed`, in seconds.
    async fn age(&self, partition: i32) -> Option<f64> {
        let answer = reqwest::get(format!("http://{}/metrics", self.address)).await.ok()?;
        let metrics = answer.text().await.ok()?;
        let name = "daegi_consumer_oldest_unapplied_seconds";
        let partition = format!("partition=\"{partition}\"");
        let mut lines = metrics.lines().filter(|line| line.starts_with(name));
        let line = lines.find(|line| line.contains("item.changed") && line.contains(&partition))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// The lines of its log with this text.
    fn logged(&self, text: &str) -> Vec<String> {
        let log = std::fs::read_to_string(self.log.path()).unwrap();
        log.lines().filter(|line| line.contains(text)).map(Into::into).collect()
    }
}

fn body(event: &ItemChanged) -> Vec<u8> {
    serde_json::to_vec(event).unwrap()
}

#[tokio::test]
async fn large_poison_is_truncated_and_stock_of_other_partitions_is_applied_meanwhile() {
    let (Some(redis), Some(kafka)) = (redis_or_skip().await, shared_kafka_or_skip().await) else {
        return;
    };
    let topics = kafka.create_topics().await.unwrap();
    let (topic, dead_letters) =
        (topics.name(Topic::ItemChanged), topics.dead_letter_name(Topic::ItemChanged));
    kafka.limit_topic(&dead_letters, 1).await.unwrap();
    let store = RedisStore::open(&redis.url(), PARTITIONS, SETTINGS).await.unwrap();
    let has_stock = async |id: &str, stock: u32| {
        let found = store.item(&item(id)).await.unwrap();
        found.is_some_and(|item| item.stock == stock)
    };
    let writer = TopicWriter::new(&kafka.bootstrap()).unwrap();
    writer.write(topic, 1, &[body(&changed("beside", 10, 1))]).await.unwrap();
    let consumer = Consumer::start(&redis.url(), &kafka.bootstrap(), &topics);
    eventually(TEST_TIMEOUT, "the item is there", async || has_stock("beside", 10).await).await;
    eventually(TEST_TIMEOUT, "nothing is unapplied", async || consumer.age(0).await == Some(0.0))
        .await;

    let poison = vec![b'x'; LARGE];
    writer.write(topic, 0, &[&poison, &body(&changed("behind", 5, 1))]).await.unwrap();
    let held = "dead letter cannot be written";
    eventually(TEST_TIMEOUT, "it says so", async || !consumer.logged(held).is_empty()).await;
    let line = consumer.logged(held).remove(0);
    for field in ["item.changed", "partition", "offset", "error"] {
        assert!(line.contains(field), "{field}: {line}");
    }
    let is_aging = async || consumer.age(0).await.is_some_and(|age| age > 1.0);
    eventually(TEST_TIMEOUT, "its age grows", is_aging).await;
    writer.write(topic, 1, &[body(&changed("beside", 0, 2))]).await.unwrap();
    eventually(TEST_TIMEOUT, "stock 0 is applied", async || has_stock("beside", 0).await).await;
    eventually(TEST_TIMEOUT, "no age there", async || consumer.age(1).await == Some(0.0)).await;
    assert!(store.item(&item("behind")).await.unwrap().is_none(), "nothing passes the poison");
    assert!(is_aging().await && consumer.is_ready().await);

    kafka.limit_topic(&dead_letters, DEFAULT_LIMIT).await.unwrap();
    eventually(TEST_TIMEOUT, "the partition continues", async || has_stock("behind", 5).await)
        .await;
    eventually(TEST_TIMEOUT, "nothing is unapplied", async || consumer.age(0).await == Some(0.0))
        .await;
    assert_eq!(consumer.logged(held).len(), 1, "once per outage");
    // The other partition may have waited for the settings of items at the start.
    let continued = consumer.logged("partition continues");
    let continued = continued.iter().filter(|line| line.contains("partition=0"));
    assert_eq!(continued.count(), 1);
    let reader = TopicReader::open(&kafka.bootstrap(), &dead_letters).await.unwrap();
    let letter = tokio::time::timeout(Duration::from_secs(60), reader.next()).await.unwrap();
    assert_eq!(letter.headers["dlq_topic"], topic);
    assert_eq!(letter.headers["dlq_partition"], "0");
    assert_eq!(letter.headers["dlq_offset"], "0");
    assert_eq!(letter.headers["dlq_original_bytes"], LARGE.to_string());
    assert_eq!(letter.headers["dlq_original_sha256"].len(), 64);
    let rest = letter.body.unwrap();
    assert!(rest.len() < LARGE && poison.starts_with(&rest));
}
