//! Invalid messages go to the dead-letter topic with a reason; all others are applied, across an outage.

mod messages;

use std::collections::BTreeMap;
use std::time::Duration;

use daegi_domain::Topic;
use daegi_testkit::topic_reader::{TopicRecord, message_count};
use daegi_testkit::{TopicReader, durable_redis_or_skip, seeded_rng, shared_kafka_or_skip};

use crate::processes::Fleet;
use crate::product_service::{self, ProductService};
use messages::{Messages, NUMBER};

/// How long Redis is down.
const OUTAGE: Duration = Duration::from_secs(20);
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn poison_is_dead_lettered_and_the_rest_applied_although_redis_is_down_for_20_seconds() {
    let (Some(mut redis), Some(kafka)) =
        (durable_redis_or_skip().await, shared_kafka_or_skip().await)
    else {
        return;
    };
    let mut rng = seeded_rng("poison");
    let topics = kafka.create_topics().await.unwrap();
    let mut product_service = ProductService::new(&kafka.bootstrap(), &topics);
    let messages = Messages::random(&product_service, &mut rng);
    let fleet = Fleet::new(&redis).with_kafka(&kafka.bootstrap(), &topics);
    let scheduler = fleet.start_with("daegi-scheduler", &[("DAEGI_KAFKA", "off")]);
    scheduler.wait_ready().await;
    let _consumer = fleet.start_ready("daegi-consumer").await;
    let dead_letters = topics.dead_letter_name(Topic::ItemChanged);
    let reader = TopicReader::open(&kafka.bootstrap(), &dead_letters).await.unwrap();

    let (early, late) = messages.records.split_at(messages.records.len() / 2);
    product_service.publish(early).await;
    let mut dead = reader.take(rng.usize(1..200)).await;
    redis.stop();
    // The consumer reads at least this half while the store is down.
    product_service.publish(late).await;
    tokio::time::sleep(OUTAGE).await;
    redis.start_again().await.unwrap();
    scheduler.wait_ready().await;
    product_service.settled(&scheduler, TEST_TIMEOUT).await;

    for (id, item) in product_service::items(&scheduler).await {
        let seen = (item["version"].as_u64().unwrap(), item["remainCount"].as_u64().unwrap());
        assert_eq!(Some(&seen), messages.last.get(&id), "{id}");
    }
    assert_eq!(product_service::items(&scheduler).await.len(), messages.last.len());
    // The markers are applied, so all dead letters are published.
    let letters = message_count(&kafka.bootstrap(), &dead_letters).await.unwrap();
    dead.extend(reader.take(usize::try_from(letters).unwrap() - dead.len()).await);
    let sent = message_count(&kafka.bootstrap(), product_service.topic()).await.unwrap();
    let source = TopicReader::open(&kafka.bootstrap(), product_service.topic()).await.unwrap();
    let sent = source.take(usize::try_from(sent).unwrap()).await;
    assert_all_poison(&dead, &messages, &by_offset(sent));
}

fn by_offset(sent: Vec<TopicRecord>) -> BTreeMap<(String, String), TopicRecord> {
    let offset = |found: &TopicRecord| (found.partition.to_string(), found.offset.to_string());
    sent.into_iter().map(|found| (offset(&found), found)).collect()
}

/// Asserts that the dead letters are exactly the invalid messages, unchanged, with partition and offset.
fn assert_all_poison(
    dead: &[TopicRecord],
    messages: &Messages,
    sent: &BTreeMap<(String, String), TopicRecord>,
) {
    let mut missing = messages.poison.clone();
    for letter in dead {
        let number = letter.headers[NUMBER].as_str();
        let kind = missing
            .remove(number)
            .unwrap_or_else(|| panic!("valid message or duplicate: {letter:?}"));
        let offset =
            (letter.headers["dlq_partition"].clone(), letter.headers["dlq_offset"].clone());
        let original = &sent[&offset];
        assert_eq!(original.headers[NUMBER], number, "{kind}");
        assert_eq!((&letter.key, &letter.body), (&original.key, &original.body), "{kind}");
        assert!(!letter.headers["dlq_reason"].is_empty(), "{kind}");
    }
    assert!(missing.is_empty(), "not dead-lettered: {missing:?}");
}
