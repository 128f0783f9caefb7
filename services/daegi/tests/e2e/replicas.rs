//! Two consumers share the work, and one of them is killed.

mod crowd;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use daegi_domain::{TokenClosed, Topic};
use daegi_kafka::{Record, metrics};
use daegi_testkit::topic_reader::message_count;
use daegi_testkit::{
    TopicReader, durable_redis_or_skip, eventually, redis_or_skip, seeded_rng, shared_kafka_or_skip,
};
use serde_json::Value;

use crate::catalogue::{self, Catalogue, changed};
use crate::member::{Fleet, FleetProcess};
use crowd::{Crowd, PEOPLE};

/// After so long a group gives up a replica that says nothing (`session.timeout.ms`), and then
/// the rest has to be read on a machine that is busy with other tests.
const TAKEOVER: Duration = Duration::from_secs(10 + 20);
const SOON: Duration = Duration::from_secs(120);

/// Longer than librdkafka takes to commit what it was told to (`auto.commit.interval.ms`, 5 s).
const COMMIT: Duration = Duration::from_secs(6);

const ITEMS: u32 = 40;
const ROUNDS: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_takes_over_from_one_that_is_killed_and_nothing_takes_effect_twice() {
    let (Some(redis), Some(kafka)) = (redis_or_skip().await, shared_kafka_or_skip().await) else {
        return;
    };
    let mut chance = seeded_rng("replicas");
    let (brokers, topics) = (kafka.bootstrap(), kafka.create_topics().await.unwrap());
    let mut catalogue = Catalogue::new(&brokers, &topics);
    let fleet = Fleet::new(&redis).with_kafka(&brokers, &topics);
    let fleet = fleet.env("DAEGI_TOKEN_COUNT_TO_MOVE", "1000");
    let scheduler = fleet.start_ready("daegi-scheduler").await;
    let mut consumers =
        vec![fleet.start_ready("daegi-consumer").await, fleet.start_ready("daegi-consumer").await];
    let crowd = Crowd::inside(&fleet, &scheduler, &mut catalogue).await;
    let mut version = both_work(&consumers, &catalogue).await;

    let (killed_in, mut killed_at) = (chance.usize(2..ROUNDS - 2), Instant::now());
    for round in 0..ROUNDS {
        version += 1;
        let mut records = crowd.orders(round, ROUNDS, &topics);
        records.extend(items_at(version, &catalogue));
        chance.shuffle(&mut records);
        catalogue.publish(&records).await;
        if round == killed_in {
            consumers.remove(chance.usize(0..2)).kill();
            killed_at = Instant::now();
        }
    }

    catalogue.settled(&scheduler, TAKEOVER).await;
    let closed = topics.name(Topic::TokenClosed);
    eventually(TAKEOVER, "all tickets are closed", async || {
        message_count(&brokers, closed).await.unwrap() >= PEOPLE as i64
    })
    .await;
    assert!(killed_at.elapsed() < TAKEOVER, "took over after {:?}", killed_at.elapsed());

    are_at(version, &catalogue::items(&scheduler).await);
    let closed = TopicReader::open(&brokers, closed).await.unwrap().take(PEOPLE).await;
    let closed = closed.iter().map(|found| serde_json::from_slice(found.body.as_ref().unwrap()));
    crowd.has_ordered_once(&closed.collect::<Result<Vec<TokenClosed>, _>>().unwrap());
    assert_eq!(consumers.remove(0).terminate().code(), Some(0));
    let events = message_count(&brokers, topics.name(Topic::TokenClosed)).await.unwrap();
    assert_eq!(events, PEOPLE as i64, "no ticket is closed twice");
}

/// The stock tells which version it is.
fn items_at(version: u64, catalogue: &Catalogue) -> Vec<Record> {
    let item = |n| changed(&format!("item-{n}"), u32::try_from(version).unwrap(), version);
    (0..ITEMS).map(|n| catalogue.record(&item(n))).collect()
}

/// An offset that is committed before its effect would show here: the consumer is killed when it
/// has read, has had the time to commit, and could do nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_is_killed_while_it_waits_for_the_store_has_committed_nothing() {
    let (Some(mut redis), Some(kafka)) =
        (durable_redis_or_skip().await, shared_kafka_or_skip().await)
    else {
        return;
    };
    let topics = kafka.create_topics().await.unwrap();
    let mut catalogue = Catalogue::new(&kafka.bootstrap(), &topics);
    let fleet = Fleet::new(&redis).with_kafka(&kafka.bootstrap(), &topics);
    let scheduler = fleet.start_with("daegi-scheduler", &[("DAEGI_KAFKA", "off")]);
    scheduler.wait_ready().await;
    let consumer = fleet.start_ready("daegi-consumer").await;
    catalogue.publish(&items_at(1, &catalogue)).await;
    catalogue.settled(&scheduler, SOON).await;

    redis.stop();
    catalogue.publish(&items_at(2, &catalogue)).await;
    eventually(SOON, "it cannot do what it read", async || {
        consumer.metric(metrics::RETRIES).await > 0.0
    })
    .await;
    tokio::time::sleep(COMMIT).await;
    consumer.kill();
    redis.start_again().await.unwrap();
    scheduler.wait_ready().await;
    let _next = fleet.start_ready("daegi-consumer").await;
    catalogue.settled(&scheduler, SOON).await;
    are_at(2, &catalogue::items(&scheduler).await);
}

/// Publishes until both have done something, and returns the version the items are at.
async fn both_work(consumers: &[FleetProcess], catalogue: &Catalogue) -> u64 {
    let mut version = 0;
    for consumer in consumers {
        let before = applied(consumer).await;
        eventually(SOON, "this one has something to do", || {
            version += 1;
            let records = items_at(version, catalogue);
            async move {
                catalogue.publish(&records).await;
                applied(consumer).await > before
            }
        })
        .await;
    }
    version
}

fn are_at(version: u64, items: &BTreeMap<String, Value>) {
    for n in 0..ITEMS {
        let item = &items[&format!("item-{n}")];
        assert_eq!((&item["version"], &item["remainCount"]), (&version.into(), &version.into()));
    }
}

async fn applied(consumer: &FleetProcess) -> f64 {
    consumer.metric(metrics::APPLIED).await
}
