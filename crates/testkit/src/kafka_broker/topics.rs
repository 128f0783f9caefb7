//! Topics of one test on a shared broker.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use daegi_domain::{Topic, TopicName, Topics};
use rdkafka::ClientConfig;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;

use super::Kafka;
use crate::eventually;

const PARTITIONS: i32 = 4;

/// Timeout of admin calls on a busy broker.
const ADMIN_TIMEOUT: Duration = Duration::from_secs(60);

static TAKEN: AtomicU32 = AtomicU32::new(0);

type Admin = AdminClient<DefaultClientContext>;

impl Kafka {
    /// Creates daegi's topics and their dead-letter topics under unique names, and returns when all
    /// of them can be written.
    ///
    /// # Errors
    /// If the broker rejects the call.
    pub async fn create_topics(&self) -> anyhow::Result<Topics> {
        let topics = named(TAKEN.fetch_add(1, Ordering::Relaxed))?;
        let admin = self.admin()?;
        let dead_letters = Topic::INBOUND.map(|topic| topics.dead_letter_name(topic));
        let names: Vec<&str> = Topic::ALL
            .map(|topic| topics.name(topic))
            .into_iter()
            .chain(dead_letters.iter().map(String::as_str))
            .collect();
        create(&admin, &names, &Topic::COMPACTED.map(|topic| topics.name(topic))).await?;
        let admin = &admin;
        eventually(ADMIN_TIMEOUT, "every partition has a leader", async || {
            names.iter().all(|name| is_led(admin, name))
        })
        .await;
        Ok(topics)
    }

    /// Sets the largest batch that a topic accepts (`max.message.bytes`). One byte prevents all
    /// writes.
    ///
    /// # Errors
    /// If the broker rejects the call.
    pub async fn limit_topic(&self, topic: &str, bytes: u32) -> anyhow::Result<()> {
        let bytes = bytes.to_string();
        let limit =
            AlterConfig::new(ResourceSpecifier::Topic(topic)).set("max.message.bytes", &bytes);
        let options = AdminOptions::new().request_timeout(Some(ADMIN_TIMEOUT));
        for altered in self.admin()?.alter_configs([&limit], &options).await? {
            altered.map_err(|(_, code)| anyhow::anyhow!("{topic} was not limited: {code}"))?;
        }
        Ok(())
    }

    fn admin(&self) -> anyhow::Result<Admin> {
        Ok(ClientConfig::new().set("bootstrap.servers", self.bootstrap()).create()?)
    }
}

fn named(place: u32) -> anyhow::Result<Topics> {
    let name = |topic: Topic| TopicName::parse(&format!("t{place}.{topic}"));
    let names = Topic::ALL.map(|topic| name(topic).map(|name| (topic, name)));
    Ok(Topics::with_names(names.into_iter().collect::<Result<Vec<_>, _>>()?)?)
}

async fn create(admin: &Admin, names: &[&str], compacted: &[&str]) -> anyhow::Result<()> {
    let topics = names.iter().map(|name| {
        let topic = NewTopic::new(name, PARTITIONS, TopicReplication::Fixed(1));
        // As `infra/kafka/broker.sh` has it.
        topic.set("cleanup.policy", if compacted.contains(name) { "compact" } else { "delete" })
    });
    let topics: Vec<_> = topics.collect();
    let options = AdminOptions::new().request_timeout(Some(ADMIN_TIMEOUT));
    for created in admin.create_topics(&topics, &options).await.context("no topics")? {
        if let Err((name, code)) = created {
            bail!("{name} was not created: {code}");
        }
    }
    Ok(())
}

fn is_led(admin: &Admin, name: &str) -> bool {
    let metadata = admin.inner().fetch_metadata(Some(name), ADMIN_TIMEOUT);
    metadata.is_ok_and(|metadata| {
        let mut partitions = metadata.topics().iter().flat_map(|topic| topic.partitions());
        partitions.all(|partition| partition.leader() >= 0)
            && metadata.topics().iter().all(|topic| topic.partitions().len() == PARTITIONS as usize)
    })
}
