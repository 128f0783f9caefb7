//! What is read takes effect once it can, or is kept with the reason.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use daegi_domain::Topic;
use daegi_kafka::{Consumer, Effect, Failure, Halt, Incoming, Record, Source};
use daegi_testkit::eventually;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::broker::{Broker, SOON};

/// Notes every body; "bad…" is poison, and nothing works while it is away.
#[derive(Debug, Clone, Default)]
struct Notes {
    bodies: Arc<Mutex<Vec<String>>>,
    away: Arc<AtomicBool>,
    refused: Arc<AtomicBool>,
    /// Partitions that were read from their beginning, and whether to their end.
    complete: Arc<Mutex<BTreeMap<i32, bool>>>,
}

impl Notes {
    fn count(&self) -> usize {
        self.bodies.lock().unwrap().len()
    }

    /// Somebody who has read everything there was before.
    fn complete() -> Self {
        let complete = (0..16).map(|partition| (partition, true)).collect();
        Self { complete: Arc::new(Mutex::new(complete)), ..Self::default() }
    }

    fn is_complete(&self) -> bool {
        let complete = self.complete.lock().unwrap();
        !complete.is_empty() && complete.values().all(|complete| *complete)
    }

    /// Forgets what it noted, and that it did.
    fn lose_everything(&self) {
        self.bodies.lock().unwrap().clear();
        self.complete.lock().unwrap().clear();
    }
}

impl Effect for Notes {
    const TOPIC: Topic = Topic::ItemChanged;

    async fn apply(&self, messages: &[Incoming]) -> Result<(), Halt> {
        if self.away.load(Ordering::SeqCst) {
            self.refused.store(true, Ordering::SeqCst);
            return Err(Halt { done: 0, why: Failure::Transient("away".into()) });
        }
        for (done, message) in messages.iter().enumerate() {
            let body = String::from_utf8(message.body.clone().unwrap()).unwrap();
            if body.starts_with("bad") {
                return Err(Halt { done, why: Failure::Poison(format!("{body} is bad")) });
            }
            self.bodies.lock().unwrap().push(body);
        }
        Ok(())
    }

    async fn read_again(&self, partition: i32, reading: bool) -> Result<bool, Failure> {
        let mut complete = self.complete.lock().unwrap();
        let again = !reading && complete.get(&partition) != Some(&true);
        if again {
            complete.insert(partition, false);
        }
        Ok(again)
    }

    async fn read_to_end(&self, partition: i32) -> Result<(), Failure> {
        // A note that was lost on the way is not made up at the end.
        if let Some(complete) = self.complete.lock().unwrap().get_mut(&partition) {
            *complete = true;
        }
        Ok(())
    }
}

/// A consumer that must be stopped, and then nothing of it may be left.
struct Running {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    fn start(broker: &Broker, notes: &Notes) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let source = Source {
            brokers: broker.at.clone(),
            topics: broker.topics.clone(),
            // Its own, as its topics are.
            group: format!("readers of {}", broker.topics.name(Topic::ItemChanged)),
        };
        let consumer = Consumer::new(source, notes.clone()).unwrap();
        tasks.spawn(consumer.run(stop.clone()));
        tasks.close();
        Self { stop, tasks }
    }

    async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(SOON, self.tasks.wait()).await.unwrap();
    }
}

async fn publish(broker: &Broker, bodies: &[String]) {
    let topic = broker.topics.name(Topic::ItemChanged);
    let record = |body: &String| Record::raw(topic, "concert", Some(body.as_bytes()));
    let records: Vec<_> = bodies.iter().map(record).collect();
    broker.publisher().publish(&records).await.unwrap();
}

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
        notes.away.store(true, Ordering::SeqCst);
        let bodies: Vec<_> = (0..50).map(|n| format!("good {n}")).collect();
        publish(&broker, &bodies).await;
        let running = Running::start(&broker, &notes);
        eventually(SOON, "an attempt", async || notes.refused.load(Ordering::SeqCst)).await;
        // Stopped while it waits: the next one begins with the same message.
        running.stop().await;
        assert_eq!(notes.count(), 0);
        let running = Running::start(&broker, &notes);
        notes.away.store(false, Ordering::SeqCst);
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

#[tokio::test]
async fn what_was_lost_is_read_again_from_the_beginning_by_itself() {
    for broker in Broker::each().await {
        let bodies: Vec<_> = (0..50).map(|n| format!("good {n}")).collect();
        publish(&broker, &bodies).await;
        let notes = Notes::default();
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
