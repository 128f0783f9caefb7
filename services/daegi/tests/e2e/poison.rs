//! What cannot be used is kept with the reason; everything else takes effect, through an outage.

mod messages;

use std::collections::BTreeMap;
use std::time::Duration;

use daegi_domain::Topic;
use daegi_testkit::topic_reader::{TopicRecord, message_count};
use daegi_testkit::{TopicReader, durable_redis_or_skip, seeded_rng, shared_kafka_or_skip};

use crate::catalogue::{self, Catalogue};
use crate::member::Fleet;
use messages::{Messages, NUMBER};

/// How long Redis is away.
const OUTAGE: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn poison_is_dead_lettered_and_the_rest_applied_though_redis_is_away_for_20_seconds() {
    let (Some(mut redis), Some(kafka)) =
        (durable_redis_or_skip().await, shared_kafka_or_skip().await)
    else {
        return;
    };
    let mut chance = seeded_rng("poison");
    let topics = kafka.create_topics().await.unwrap();
    let mut catalogue = Catalogue::new(&kafka.bootstrap(), &topics);
    let messages = Messages::random(&catalogue, &mut chance);
    let fleet = Fleet::new(&redis).with_kafka(&kafka.bootstrap(), &topics);
    let scheduler = fleet.start_with("daegi-scheduler", &[("DAEGI_KAFKA", "off")]);
    scheduler.wait_ready().await;
    let _consumer = fleet.start_ready("daegi-consumer").await;
    let dead_letters = topics.dead_letter_name(Topic::ItemChanged);
    let reader = TopicReader::open(&kafka.bootstrap(), &dead_letters).await.unwrap();

    let (early, late) = messages.records.split_at(messages.records.len() / 2);
    catalogue.publish(early).await;
    let mut dead = reader.take(chance.usize(1..200)).await;
    redis.stop();
    // So that at least this half meets a store that is away.
    catalogue.publish(late).await;
    tokio::time::sleep(OUTAGE).await;
    redis.start_again().await.unwrap();
    scheduler.wait_ready().await;
    catalogue.settled(&scheduler, SOON).await;

    for (id, item) in catalogue::items(&scheduler).await {
        let seen = (item["version"].as_u64().unwrap(), item["remainCount"].as_u64().unwrap());
        assert_eq!(Some(&seen), messages.last.get(&id), "{id}");
    }
    assert_eq!(catalogue::items(&scheduler).await.len(), messages.last.len());
    // Everything was dealt with, so all letters are there.
    let letters = message_count(&kafka.bootstrap(), &dead_letters).await.unwrap();
    dead.extend(reader.take(usize::try_from(letters).unwrap() - dead.len()).await);
    let sent = message_count(&kafka.bootstrap(), catalogue.topic()).await.unwrap();
    let source = TopicReader::open(&kafka.bootstrap(), catalogue.topic()).await.unwrap();
    let sent = source.take(usize::try_from(sent).unwrap()).await;
    are_the_poison(&dead, &messages, &by_place(sent));
}

fn by_place(sent: Vec<TopicRecord>) -> BTreeMap<(String, String), TopicRecord> {
    let place = |found: &TopicRecord| (found.partition.to_string(), found.offset.to_string());
    sent.into_iter().map(|found| (place(&found), found)).collect()
}

/// Every poison once and none else, each as it was sent and with the place it was sent to.
fn are_the_poison(
    dead: &[TopicRecord],
    messages: &Messages,
    sent: &BTreeMap<(String, String), TopicRecord>,
) {
    let mut missing = messages.poison.clone();
    for letter in dead {
        let number = letter.headers[NUMBER].as_str();
        let kind = missing.remove(number).unwrap_or_else(|| panic!("good, or twice: {letter:?}"));
        let place = (letter.headers["dlq_partition"].clone(), letter.headers["dlq_offset"].clone());
        let original = &sent[&place];
        assert_eq!(original.headers[NUMBER], number, "{kind}");
        assert_eq!((&letter.key, &letter.body), (&original.key, &original.body), "{kind}");
        assert!(!letter.headers["dlq_reason"].is_empty(), "{kind}");
    }
    assert!(missing.is_empty(), "not dead-lettered: {missing:?}");
}
