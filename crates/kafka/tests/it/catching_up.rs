//! What messages did may get lost: then they are read again, and no more than they must be.

use daegi_domain::Topic;
use daegi_testkit::{Writer, eventually};

use crate::broker::{Broker, SOON};
use crate::notes::{Notes, Running, publish};

#[tokio::test]
async fn what_was_lost_is_read_again_from_the_beginning_by_itself() {
    for broker in Broker::each().await {
        let bodies: Vec<_> = (0..50).map(|n| format!("good {n}")).collect();
        publish(&broker, &bodies).await;
        let notes = Notes::new();
        let running = Running::start(&broker, &notes);
        eventually(SOON, "everything is read", async || notes.is_complete()).await;
        let all = || {
            let mut noted = notes.bodies.lock().unwrap().clone();
            noted.sort_by_key(|body| body["good ".len()..].parse::<u32>().unwrap());
            noted.dedup();
            noted
        };
        assert_eq!(all(), bodies);

        notes.lose_everything();
        eventually(SOON, "everything is read again", async || notes.is_complete()).await;
        assert_eq!(all(), bodies);
        running.stop().await;

        // Also by the next replica, although the group has read everything.
        notes.lose_everything();
        let running = Running::start(&broker, &notes);
        eventually(SOON, "everything is read once more", async || notes.is_complete()).await;
        assert_eq!(all(), bodies);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_replica_that_takes_over_goes_on_in_the_middle() {
    for broker in Broker::each().await {
        let body = |n: usize| if n == 7 { "bad 7".to_owned() } else { format!("good {n}") };
        let bodies: Vec<_> = (0..50).map(body).collect();
        let good: Vec<_> = bodies.iter().filter(|body| !body.starts_with("bad")).cloned().collect();
        publish(&broker, &bodies).await;
        let notes = Notes::new();
        // In the first reading of all, and in one that had to go back.
        for letters in 1..=2 {
            notes.lose_everything();
            notes.limit(20);
            let running = Running::start(&broker, &notes);
            eventually(SOON, "a part of it", async || notes.is_full()).await;
            running.stop().await;
            assert_eq!(*notes.bodies.lock().unwrap(), good[..20]);
            notes.limit(usize::MAX);
            let running = Running::start(&broker, &notes);
            eventually(SOON, "everything is read", async || notes.is_complete()).await;
            assert_eq!(*notes.bodies.lock().unwrap(), good);
            running.stop().await;
            let dead_letters = broker.topics.dead_letters(Topic::ItemChanged);
            assert_eq!(broker.written(&dead_letters).await, letters);
        }
    }
}

#[tokio::test]
async fn a_replay_from_a_time_reads_nothing_that_was_written_before() {
    // The embedded broker cannot look up offsets by time, and replays begin at the beginning there.
    for broker in Broker::each().await.into_iter().filter(|broker| broker.name == "real") {
        let (writer, topic) =
            (Writer::new(&broker.at).unwrap(), broker.topics.name(Topic::ItemChanged));
        writer.write_at(topic, 0, &["good 1", "good 2"], Some(1_700_000_000_000)).await.unwrap();
        writer.write(topic, 0, &["good 3"]).await.unwrap();
        let notes = Notes::since(1_750_000_000_000);
        let running = Running::start(&broker, &notes);
        eventually(SOON, "it is read", async || notes.is_complete() && notes.count() == 3).await;
        assert_eq!(*notes.bodies.lock().unwrap(), ["good 1", "good 2", "good 3"], "a new group");
        notes.lose_everything();
        eventually(SOON, "it is read again", async || notes.is_complete() && notes.count() > 0)
            .await;
        assert_eq!(*notes.bodies.lock().unwrap(), ["good 3"]);
        running.stop().await;
    }
}
