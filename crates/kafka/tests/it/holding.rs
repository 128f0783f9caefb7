//! A partition that cannot go on holds itself and no other.

use daegi_domain::Topic;
use daegi_testkit::eventually;

use crate::broker::{Broker, SOON};
use crate::notes::{Notes, Running};

/// More than Kafka's producers accept by default, less than its brokers do.
const LARGE: usize = 1_020_000;

/// SHA-256 of "bad " and 1,019,996 times "x".
const LARGE_SHA256: &str = "363ca7ca528d3b0ee09587e9ef4edeb374f5db612eea09f3e294bf540f6608f8";

fn large() -> String {
    format!("bad {}", "x".repeat(LARGE - 4))
}

#[tokio::test]
async fn poison_too_large_for_a_dead_letter_is_truncated_and_stops_no_partition() {
    for broker in Broker::each().await {
        broker.write(0, &[large(), "good behind".into()]).await;
        broker.write(1, &["good beside"]).await;
        let notes = Notes::complete();
        let running = Running::start(&broker, &notes);
        eventually(SOON, "the other partition goes on", async || notes.has("good beside")).await;
        eventually(SOON, "the partition goes on", async || notes.has("good behind")).await;

        let dead_letters = broker.topics.dead_letters(Topic::ItemChanged);
        let letter = broker.read_named(&dead_letters, 1).await.remove(0);
        let body = letter.body.unwrap();
        assert!(
            (100_000..1_000_000).contains(&body.len()),
            "{}: {} bytes",
            broker.name,
            body.len()
        );
        assert!(large().as_bytes().starts_with(&body), "it is the beginning of the original");
        let topic = broker.topics.name(Topic::ItemChanged);
        let expected = [
            ("dlq_topic", topic),
            ("dlq_partition", "0"),
            ("dlq_offset", "0"),
            ("dlq_original_bytes", "1020000"),
            ("dlq_original_sha256", LARGE_SHA256),
            ("dlq_reason", "bad xxxxxxxxxxxxxxxx is bad"),
        ];
        for (header, value) in expected {
            assert_eq!(letter.headers[header], value, "{}: {header}", broker.name);
        }
        running.stop().await;
        assert_eq!(broker.written(&dead_letters).await, 1, "{}", broker.name);
    }
}

#[tokio::test]
async fn a_dead_letter_topic_that_cannot_be_written_holds_only_the_partition_of_the_poison() {
    for broker in Broker::each().await {
        broker.deny_dead_letters().await;
        broker.write(0, &["good before", "bad", "good behind"]).await;
        let notes = Notes::complete();
        let running = Running::start(&broker, &notes);
        eventually(SOON, "what is before the poison", async || notes.has("good before")).await;
        for n in 0..3 {
            let body = format!("good beside {n}");
            broker.write(1, &[&body]).await;
            eventually(SOON, "the other partition goes on", async || notes.has(&body)).await;
        }
        assert!(!notes.has("good behind"), "{}: nothing passes the poison", broker.name);

        broker.permit_dead_letters(1_048_588).await;
        eventually(SOON, "the partition goes on", async || notes.has("good behind")).await;
        let dead_letters = broker.topics.dead_letters(Topic::ItemChanged);
        let letter = broker.read_named(&dead_letters, 1).await.remove(0);
        assert_eq!(letter.headers["dlq_offset"], "1", "{}", broker.name);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_dead_letter_topic_with_a_lower_limit_gets_less_of_a_letter() {
    for broker in Broker::each().await.into_iter().filter(|broker| broker.name == "real") {
        broker.permit_dead_letters(10_000).await;
        broker.write(0, &[large(), "good behind".into()]).await;
        let notes = Notes::complete();
        let running = Running::start(&broker, &notes);
        eventually(SOON, "the partition goes on", async || notes.has("good behind")).await;
        let dead_letters = broker.topics.dead_letters(Topic::ItemChanged);
        let letter = broker.read_named(&dead_letters, 1).await.remove(0);
        assert!((1_000..10_000).contains(&letter.body.unwrap().len()));
        assert_eq!(letter.headers["dlq_original_sha256"], LARGE_SHA256);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_held_partition_with_more_than_its_queue_takes_keeps_others_going_and_loses_nothing() {
    for broker in Broker::each().await {
        let many: Vec<_> = (0..20_000).map(|n| format!("many {n}")).collect();
        broker.write(0, &["stuck"]).await;
        broker.write(0, &many).await;
        let notes = Notes::complete();
        let running = Running::start(&broker, &notes);
        eventually(SOON, "an attempt", async || notes.is_full()).await;
        for n in 0..3 {
            let body = format!("good beside {n}");
            broker.write(1, &[&body]).await;
            eventually(SOON, "the other partition goes on", async || notes.has(&body)).await;
        }
        assert!(notes.with_prefix("many").is_empty(), "{}: nothing passes", broker.name);
        notes.unstick();
        eventually(SOON, "all of them", async || notes.with_prefix("many").len() >= 20_000).await;
        assert_eq!(notes.with_prefix("many"), many, "{}: each once and in order", broker.name);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_held_partition_is_read_again_after_a_loss_up_to_the_record_that_holds_it() {
    for broker in Broker::each().await {
        broker.write(0, &["good before", "stuck", "good behind"]).await;
        broker.write(1, &["good beside"]).await;
        let notes = Notes::new();
        let running = Running::start(&broker, &notes);
        let is_read = async || notes.has("good before") && notes.has("good beside");
        eventually(SOON, "it is read", is_read).await;
        eventually(SOON, "it is held", async || notes.is_full()).await;
        notes.lose_everything();
        eventually(SOON, "it is read again", is_read).await;
        assert!(!notes.has("good behind") && !notes.is_complete());
        notes.unstick();
        eventually(SOON, "it is read to its end", async || notes.is_complete()).await;
        assert_eq!(notes.with_prefix("good b").len(), 3, "{}", broker.name);
        running.stop().await;
    }
}
