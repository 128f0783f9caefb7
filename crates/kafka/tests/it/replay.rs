//! After a data loss partitions are replayed, and no further back than necessary.

use std::time::Duration;

use daegi_domain::Topic;
use daegi_testkit::{TopicWriter, eventually};

use crate::broker::{Broker, TEST_TIMEOUT};
use crate::recording_handler::{RecordingHandler, Running, publish};

#[tokio::test]
async fn lost_effects_are_replayed_from_the_start() {
    for broker in Broker::each().await {
        let bodies: Vec<_> = (0..50).map(|n| format!("good {n}")).collect();
        publish(&broker, &bodies).await;
        let handler = RecordingHandler::new();
        let running = Running::start(&broker, &handler);
        eventually(TEST_TIMEOUT, "everything is read", async || handler.is_complete()).await;
        let all = || {
            let mut applied = handler.bodies.lock().unwrap().clone();
            applied.sort_by_key(|body| body["good ".len()..].parse::<u32>().unwrap());
            applied.dedup();
            applied
        };
        assert_eq!(all(), bodies);

        handler.lose_everything();
        eventually(TEST_TIMEOUT, "everything is read again", async || handler.is_complete()).await;
        assert_eq!(all(), bodies);
        running.stop().await;

        // Also by the next replica, although the group's offset is at the end.
        handler.lose_everything();
        let running = Running::start(&broker, &handler);
        eventually(TEST_TIMEOUT, "everything is read once more", async || handler.is_complete())
            .await;
        assert_eq!(all(), bodies);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_replica_that_takes_over_continues_at_the_offset() {
    for broker in Broker::each().await {
        let body = |n: usize| if n == 7 { "bad 7".to_owned() } else { format!("good {n}") };
        let bodies: Vec<_> = (0..50).map(body).collect();
        let good: Vec<_> = bodies.iter().filter(|body| !body.starts_with("bad")).cloned().collect();
        publish(&broker, &bodies).await;
        let handler = RecordingHandler::new();
        // In the first replay, and in one that was rewound.
        for letters in 1..=2 {
            handler.lose_everything();
            handler.limit(20);
            let running = Running::start(&broker, &handler);
            eventually(TEST_TIMEOUT, "a part is read", async || handler.has_failed()).await;
            running.stop().await;
            assert_eq!(*handler.bodies.lock().unwrap(), good[..20]);
            handler.limit(usize::MAX);
            let running = Running::start(&broker, &handler);
            eventually(TEST_TIMEOUT, "everything is read", async || handler.is_complete()).await;
            assert_eq!(*handler.bodies.lock().unwrap(), good);
            running.stop().await;
            let dead_letters = broker.topics.dead_letter_name(Topic::ItemChanged);
            assert_eq!(broker.message_count(&dead_letters).await, letters);
        }
    }
}

#[tokio::test]
async fn a_replay_from_a_time_reads_nothing_that_was_written_before() {
    // The embedded broker cannot look up offsets by time, so replays read from the start there.
    for broker in Broker::each().await.into_iter().filter(|broker| broker.name == "real") {
        let (writer, topic) =
            (TopicWriter::new(&broker.at).unwrap(), broker.topics.name(Topic::ItemChanged));
        writer.write_at(topic, 0, &["good 1", "good 2"], Some(1_700_000_000_000)).await.unwrap();
        writer.write(topic, 0, &["good 3"]).await.unwrap();
        let handler = RecordingHandler::since(1_750_000_000_000);
        let running = Running::start(&broker, &handler);
        eventually(TEST_TIMEOUT, "it is read", async || {
            handler.is_complete() && handler.count() == 3
        })
        .await;
        assert_eq!(*handler.bodies.lock().unwrap(), ["good 1", "good 2", "good 3"], "a new group");
        handler.lose_everything();
        eventually(TEST_TIMEOUT, "it is read again", async || {
            handler.is_complete() && handler.count() > 0
        })
        .await;
        assert_eq!(*handler.bodies.lock().unwrap(), ["good 3"]);
        running.stop().await;
    }
}

/// A test that panics drops its broker and then its runtime, with the consumer still running.
#[test]
fn a_runtime_does_not_wait_for_a_consumer_that_is_dropped() {
    let (done, dropped) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (broker, handler) = (Broker::embedded(), RecordingHandler::new());
            publish(&broker, &["good 1".to_owned()]).await;
            let _running = Running::start(&broker, &handler);
            eventually(TEST_TIMEOUT, "it is read", async || handler.is_complete()).await;
            handler.lose_everything();
            eventually(TEST_TIMEOUT, "it is replayed", async || handler.count() > 0).await;
        });
        let begun = std::time::Instant::now();
        drop(runtime);
        done.send(begun.elapsed()).unwrap();
    });
    let took = dropped.recv_timeout(2 * TEST_TIMEOUT).unwrap();
    assert!(took < Duration::from_secs(2), "{took:?}");
}
