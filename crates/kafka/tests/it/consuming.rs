//! What is read takes effect once it can, or is kept with the reason.

use daegi_domain::Topic;
use daegi_testkit::eventually;

use crate::broker::{Broker, SOON};
use crate::notes::{Notes, Running, publish};

#[tokio::test]
async fn poison_becomes_dead_letters_and_everything_else_takes_effect_in_order() {
    for broker in Broker::each().await {
        let is_bad = |n: &usize| n.is_multiple_of(10);
        let body = |n| if is_bad(&n) { format!("bad {n}") } else { format!("good {n}") };
        publish(&broker, &(0..1000).map(body).collect::<Vec<_>>()).await;
        let notes = Notes::complete();
        let running = Running::start(&broker, &notes);
        eventually(SOON, "all good ones", async || notes.count() == 900).await;
        let good: Vec<_> = (0..1000).filter(|n| !is_bad(n)).map(body).collect();
        assert_eq!(*notes.bodies.lock().unwrap(), good);
        let topic = broker.topics.name(Topic::ItemChanged);
        let dead = broker.read_named(&broker.topics.dead_letters(Topic::ItemChanged), 100).await;
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
async fn what_cannot_take_effect_yet_is_waited_for_and_nothing_is_skipped() {
    for broker in Broker::each().await {
        let notes = Notes::complete();
        notes.limit(0);
        let bodies: Vec<_> = (0..50).map(|n| format!("good {n}")).collect();
        publish(&broker, &bodies).await;
        let running = Running::start(&broker, &notes);
        eventually(SOON, "an attempt", async || notes.is_full()).await;
        // Stopped while it waits: the next one begins with the same message.
        running.stop().await;
        assert_eq!(notes.count(), 0);
        let running = Running::start(&broker, &notes);
        notes.limit(usize::MAX);
        eventually(SOON, "all of them", async || notes.count() == 50).await;
        assert_eq!(*notes.bodies.lock().unwrap(), bodies);
        running.stop().await;
    }
}

#[tokio::test]
async fn a_new_consumer_goes_on_where_the_last_one_stopped() {
    for broker in Broker::each().await {
        publish(&broker, &["good 1".into(), "good 2".into()]).await;
        let first = Notes::complete();
        let running = Running::start(&broker, &first);
        eventually(SOON, "both", async || first.count() == 2).await;
        running.stop().await;
        publish(&broker, &["good 3".into()]).await;
        let second = Notes::complete();
        let running = Running::start(&broker, &second);
        eventually(SOON, "the third", async || second.count() > 0).await;
        assert_eq!(*second.bodies.lock().unwrap(), ["good 3"]);
        running.stop().await;
    }
}
