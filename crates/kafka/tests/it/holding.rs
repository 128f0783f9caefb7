//! A held partition does not hold any other.

use daegi_domain::Topic;
use daegi_testkit::eventually;

use crate::broker::{Broker, TEST_TIMEOUT};
use crate::recording_handler::{RecordingHandler, Running};

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
        let handler = RecordingHandler::complete();
        let running = Running::start(&broker, &handler);
        eventually(TEST_TIMEOUT, "the other partition continues", async || {
            handler.has("good beside")
        })
        .await;
        eventually(TEST_TIMEOUT, "the partition continues", async || handler.has("good behind"))
            .await;

        let dead_letters = broker.topics.dead_letter_name(Topic::ItemChanged);
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
        assert_eq!(broker.message_count(&dead_letters).await, 1, "{}", broker.name);
    }
}

#[tokio::test]
async fn a_dead_letter_topic_that_cannot_be_written_holds_only_the_partition_of_the_poison() {
    for broker in Broker::each().await {
        broker.deny_dead_letters().await;
        broker.write(0, &["good before", "bad", "good behind"]).await;
        let handler = RecordingHandler::complete();
        let running = Running::start(&broker, &handler);
        eventually(TEST_TIMEOUT, "what is before the poison", async || handler.has("good before"))
            .await;
        for n in 0..3 {
            let body = format!("good beside {n}");
            broker.write(1, &[&body]).await;
            eventually(TEST_TIMEOUT, "the other partition continues", async || handler.has(&body))
                .await;
        }
        assert!(!handler.has("good behind"), "{}: nothing passes the poison", broker.name);

        broker.permit_dead_letters(1_048_588).await;
        eventually(TEST_TIMEOUT, "the partition continues", async || handler.has("good behind"))
            .await;
        let dead_letters = broker.topics.dead_letter_name(Topic::ItemChanged);
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
        let handler = RecordingHandler::complete();
        let running = Running::start(&broker, &handler);
        eventually(TEST_TIMEOUT, "the partition continues", async || handler.has("good behind"))
            .await;
        let dead_letters = broker.topics.dead_letter_name(Topic::ItemChanged);
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
        let handler = RecordingHandler::complete();
        let running = Running::start(&broker, &handler);
        eventually(TEST_TIMEOUT, "an attempt", async || handler.has_failed()).await;
        for n in 0..3 {
            let body = format!("good beside {n}");
            broker.write(1, &[&body]).await;
            eventually(TEST_TIMEOUT, "the other partition continues", async || handler.has(&body))
                .await;
        }
        assert!(handler.with_prefix("many").is_empty(), "{}: nothing passes", broker.name);
        handler.unstick();
        eventually(TEST_TIMEOUT, "all of them", async || {
            handler.with_prefix("many").len() >= 20_000
        })
        .await;
        assert_eq!(handler.with_prefix("many"), many, "{}: each once and in order", broker.name);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_held_partition_is_read_again_after_a_loss_up_to_the_record_that_holds_it() {
    for broker in Broker::each().await {
        broker.write(0, &["good before", "stuck", "good behind"]).await;
        broker.write(1, &["good beside"]).await;
        let handler = RecordingHandler::new();
        let running = Running::start(&broker, &handler);
        let is_read = async || handler.has("good before") && handler.has("good beside");
        eventually(TEST_TIMEOUT, "it is read", is_read).await;
        eventually(TEST_TIMEOUT, "it is held", async || handler.has_failed()).await;
        handler.lose_everything();
        eventually(TEST_TIMEOUT, "it is read again", is_read).await;
        assert!(!handler.has("good behind") && !handler.is_complete());
        handler.unstick();
        eventually(TEST_TIMEOUT, "it is read to its end", async || handler.is_complete()).await;
        assert_eq!(handler.with_prefix("good b").len(), 3, "{}", broker.name);
        running.stop().await;
    }
}
