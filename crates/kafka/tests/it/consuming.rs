//! Messages are applied, retried, or written to the dead-letter topic with the reason.

use daegi_domain::Topic;
use daegi_testkit::eventually;

use crate::broker::{Broker, TEST_TIMEOUT};
use crate::recording_handler::{RecordingHandler, Running, publish};

#[tokio::test]
async fn poison_is_dead_lettered_and_everything_else_is_applied_in_order() {
    for broker in Broker::each().await {
        let is_bad = |n: &usize| n.is_multiple_of(10);
        let body = |n| if is_bad(&n) { format!("bad {n}") } else { format!("good {n}") };
        publish(&broker, &(0..1000).map(body).collect::<Vec<_>>()).await;
        let handler = RecordingHandler::complete();
        let running = Running::start(&broker, &handler);
        eventually(TEST_TIMEOUT, "all good ones", async || handler.count() == 900).await;
        let good: Vec<_> = (0..1000).filter(|n| !is_bad(n)).map(body).collect();
        assert_eq!(*handler.bodies.lock().unwrap(), good);
        let topic = broker.topics.name(Topic::ItemChanged);
        let dead =
            broker.read_named(&broker.topics.dead_letter_name(Topic::ItemChanged), 100).await;
        for (n, letter) in dead.iter().enumerate() {
            assert_eq!(letter.body, Some(format!("bad {}", n * 10).into_bytes()));
            assert_eq!(letter.headers["dlq_reason"], format!("bad {} is bad", n * 10));
            assert_eq!(letter.headers["dlq_topic"], topic);
            assert_eq!(letter.headers["dlq_offset"], (n * 10).to_string());
            assert!(letter.headers.contains_key("dlq_partition"));
        }
        running.stop().await;
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_applied_yet_is_retried_and_none_is_skipped() {
    for broker in Broker::each().await {
        let handler = RecordingHandler::complete();
        handler.limit(0);
        let bodies: Vec<_> = (0..50).map(|n| format!("good {n}")).collect();
        publish(&broker, &bodies).await;
        let running = Running::start(&broker, &handler);
        eventually(TEST_TIMEOUT, "an attempt", async || handler.has_failed()).await;
        // Stopped during the backoff: the next replica starts with the same message.
        running.stop().await;
        assert_eq!(handler.count(), 0);
        let running = Running::start(&broker, &handler);
        handler.limit(usize::MAX);
        eventually(TEST_TIMEOUT, "all of them", async || handler.count() == 50).await;
        assert_eq!(*handler.bodies.lock().unwrap(), bodies);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_new_consumer_goes_on_where_the_last_one_stopped() {
    for broker in Broker::each().await {
        publish(&broker, &["good 1".into(), "good 2".into()]).await;
        let first = RecordingHandler::complete();
        let running = Running::start(&broker, &first);
        eventually(TEST_TIMEOUT, "both", async || first.count() == 2).await;
        running.stop().await;
        publish(&broker, &["good 3".into()]).await;
        let second = RecordingHandler::complete();
        let running = Running::start(&broker, &second);
        eventually(TEST_TIMEOUT, "the third", async || second.count() > 0).await;
        assert_eq!(*second.bodies.lock().unwrap(), ["good 3"]);
        running.stop().await;
    }
}
