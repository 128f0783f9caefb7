//! A real Redis and a real broker, of this run alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use daegi_domain::{Settings, Topic, TopicName, Topics};
use daegi_store::{RedisStore, SharedStore};
use daegi_testkit::{Kafka, Redis};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;

/// As many as a fleet has by default.
const STORE_PARTITIONS: u16 = 16;

/// As many as the broker's own topics have.
pub(crate) const TOPIC_PARTITIONS: i32 = 4;

/// Quota and length of ticks; nothing here ticks.
const SETTINGS: Settings = Settings { token_count_to_move: 10, tick_ms: 1_000 };

/// Everything a contestant needs from the world. It ends with this value.
pub(crate) struct Stage {
    redis: Redis,
    kafka: Kafka,
    admin: AdminClient<DefaultClientContext>,
    topics: AtomicU32,
}

impl Stage {
    pub(crate) async fn set_up() -> anyhow::Result<Self> {
        let redis = Redis::start().await?;
        let kafka = Kafka::start().await?;
        let admin = ClientConfig::new().set("bootstrap.servers", kafka.bootstrap()).create()?;
        Ok(Self { redis, kafka, admin, topics: AtomicU32::new(0) })
    }

    /// Where the broker is.
    pub(crate) fn brokers(&self) -> String {
        self.kafka.bootstrap()
    }

    /// An empty store.
    pub(crate) async fn store(&self) -> anyhow::Result<SharedStore> {
        let mut connection = self.redis.connection().await?;
        redis::cmd("FLUSHALL").arg("ASYNC").query_async::<()>(&mut connection).await?;
        let store = RedisStore::open(&self.redis.url(), STORE_PARTITIONS, SETTINGS).await?;
        Ok(Arc::new(store))
    }

    /// A new, empty topic that nobody else uses.
    pub(crate) async fn topic(&self) -> anyhow::Result<String> {
        let name = format!("bench-{}", self.topics.fetch_add(1, Ordering::Relaxed));
        let topic = NewTopic::new(&name, TOPIC_PARTITIONS, TopicReplication::Fixed(1));
        for created in self.admin.create_topics([&topic], &AdminOptions::new()).await? {
            created.map_err(|(name, code)| anyhow::anyhow!("topic {name}: {code}"))?;
        }
        Ok(name)
    }

    /// Gives the disk back.
    pub(crate) async fn remove(&self, topics: &[&str]) -> anyhow::Result<()> {
        self.admin.delete_topics(topics, &AdminOptions::new()).await?;
        Ok(())
    }
}

/// The usual topics, one of them under another name.
pub(crate) fn renamed(topic: Topic, name: &str) -> anyhow::Result<Topics> {
    Topics::renamed([(topic, TopicName::parse(name)?)]).context("topics of the bench")
}
