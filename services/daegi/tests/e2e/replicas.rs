//! Two consumers share the topics, and one of them is killed.

mod virtual_users;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use daegi_domain::{TokenClosed, Topic};
use daegi_kafka::{Record, metrics};
use daegi_testkit::topic_reader::message_count;
use daegi_testkit::{
    TopicReader, durable_redis_or_skip, eventually, redis_or_skip, seeded_rng, shared_kafka_or_skip,
};
use serde_json::Value;

use crate::processes::{Fleet, FleetProcess};
use crate::product_service::{self, ProductService, changed};
use virtual_users::{USERS, VirtualUsers};

/// The group evicts a silent replica after 10 s (`session.timeout.ms`). 20 s more to read the rest on a
/// machine that runs other tests, too.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(10 + 20);
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Longer than the commit interval of librdkafka (`auto.commit.interval.ms`, 5 s).
const COMMIT_WAIT: Duration = Duration::from_secs(6);

const ITEMS: u32 = 40;
const ROUNDS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_takes_over_from_one_that_is_killed_and_nothing_takes_effect_twice() {
    let (Some(redis), Some(kafka)) = (redis_or_skip().await, shared_kafka_or_skip().await) else {
        return;
    };
    let mut rng = seeded_rng("replicas");
    let (brokers, topics) = (kafka.bootstrap(), kafka.create_topics().await.unwrap());
    let mut product_service = ProductService::new(&brokers, &topics);
    let fleet = Fleet::new(&redis).with_kafka(&brokers, &topics);
    let fleet = fleet.env("DAEGI_TOKEN_COUNT_TO_MOVE", "1000");
    let scheduler = fleet.start_ready("daegi-scheduler").await;
    let mut consumers =
        vec![fleet.start_ready("daegi-consumer").await, fleet.start_ready("daegi-consumer").await];
    let users = VirtualUsers::admitted(&fleet, &scheduler, &mut product_service).await;
    let mut version = until_both_apply(&consumers, &product_service).await;

    let (killed_in, mut killed_at) = (rng.usize(2..ROUNDS - 2), Instant::now());
    for round in 0..ROUNDS {
        version += 1;
        let mut records = users.orders(round, ROUNDS, &topics);
        records.extend(items_at(version, &product_service));
        rng.shuffle(&mut records);
        product_service.publish(&records).await;
        if round == killed_in {
            consumers.remove(rng.usize(0..2)).kill();
            killed_at = Instant::now();
        }
    }

    product_service.settled(&scheduler, TAKEOVER_TIMEOUT).await;
    let closed = topics.name(Topic::TokenClosed);
    eventually(TAKEOVER_TIMEOUT, "all tickets have ended", async || {
        message_count(&brokers, closed).await.unwrap() >= USERS as i64
    })
    .await;
    assert!(killed_at.elapsed() < TAKEOVER_TIMEOUT, "took over after {:?}", killed_at.elapsed());

    assert_at(version, &product_service::items(&scheduler).await);
    let closed = TopicReader::open(&brokers, closed).await.unwrap().take(USERS).await;
    let closed = closed.iter().map(|found| serde_json::from_slice(found.body.as_ref().unwrap()));
    users.assert_completed_once(&closed.collect::<Result<Vec<TokenClosed>, _>>().unwrap());
    assert_eq!(consumers.remove(0).terminate().code(), Some(0));
    let events = message_count(&brokers, topics.name(Topic::TokenClosed)).await.unwrap();
    assert_eq!(events, USERS as i64, "no ticket ends twice");
}

/// Items whose stock equals their version.
fn items_at(version: u64, product_service: &ProductService) -> Vec<Record> {
    let item = |n| changed(&format!("item-{n}"), u32::try_from(version).unwrap(), version);
    (0..ITEMS).map(|n| product_service.record(&item(n))).collect()
}

/// The consumer is killed after it has read messages and had time to commit, but could not apply them.
/// An offset that was committed before its effect would lose them.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_killed_while_the_store_is_down_has_committed_nothing() {
    let (Some(mut redis), Some(kafka)) =
        (durable_redis_or_skip().await, shared_kafka_or_skip().await)
    else {
        return;
    };
    let topics = kafka.create_topics().await.unwrap();
    let mut product_service = ProductService::new(&kafka.bootstrap(), &topics);
    let fleet = Fleet::new(&redis).with_kafka(&kafka.bootstrap(), &topics);
    let scheduler = fleet.start_with("daegi-scheduler", &[("DAEGI_KAFKA", "off")]);
    scheduler.wait_ready().await;
    let consumer = fleet.start_ready("daegi-consumer").await;
    product_service.publish(&items_at(1, &product_service)).await;
    product_service.settled(&scheduler, TEST_TIMEOUT).await;

    redis.stop();
    product_service.publish(&items_at(2, &product_service)).await;
    eventually(TEST_TIMEOUT, "the consumer retries", async || {
        consumer.metric(metrics::RETRIES).await > 0.0
    })
    .await;
    tokio::time::sleep(COMMIT_WAIT).await;
    consumer.kill();
    redis.start_again().await.unwrap();
    scheduler.wait_ready().await;
    let _next = fleet.start_ready("daegi-consumer").await;
    product_service.settled(&scheduler, TEST_TIMEOUT).await;
    assert_at(2, &product_service::items(&scheduler).await);
}

/// Publishes until each consumer has applied a message. Returns the last version.
async fn until_both_apply(consumers: &[FleetProcess], product_service: &ProductService) -> u64 {
    let mut version = 0;
    for consumer in consumers {
        let before = applied(consumer).await;
        eventually(TEST_TIMEOUT, "this consumer applies a message", || {
            version += 1;
            let records = items_at(version, product_service);
            async move {
                product_service.publish(&records).await;
                applied(consumer).await > before
            }
        })
        .await;
    }
    version
}

fn assert_at(version: u64, items: &BTreeMap<String, Value>) {
    for n in 0..ITEMS {
        let item = &items[&format!("item-{n}")];
        assert_eq!((&item["version"], &item["remainCount"]), (&version.into(), &version.into()));
    }
}

async fn applied(consumer: &FleetProcess) -> f64 {
    consumer.metric(metrics::APPLIED).await
}
