//! From the outbox to an order service through the embedded broker.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{
    ControlChanged, Number, Opening, OpeningChange, Order, Policy, PolicyChange, Reveal,
    TicketKeys, TokenActivated, Topics,
};
use daegi_kafka::{EmbeddedBroker, Publisher};
use daegi_scheduler::{DiscardSink, KafkaSink, Relay, RelayError};
use daegi_store::SharedStore;
use daegi_testkit::{TopicReader, eventually};
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::message::{Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::task::JoinSet;

use crate::harness::{SchedulerHarness, item, user};

const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const SECRET: &str = "1:000102030405060708090a0b0c0d0e0f";

fn keys() -> TicketKeys {
    SECRET.parse().unwrap()
}

fn relay(harness: &SchedulerHarness, broker: &EmbeddedBroker, delivery_timeout: Duration) -> Relay {
    relay_to(harness, broker.bootstrap_servers(), delivery_timeout)
}

fn relay_to(harness: &SchedulerHarness, brokers: &str, delivery_timeout: Duration) -> Relay {
    let publisher = Publisher::new(brokers).unwrap().with_delivery_timeout(delivery_timeout);
    Relay::new(
        harness.store.clone(),
        KafkaSink::shared(publisher, Topics::default(), keys()).unwrap(),
    )
}

/// Plans a draw for the concert.
async fn plan_draw(harness: &SchedulerHarness, reveal: Reveal) {
    let stored = harness.store.item(&item("concert")).await.unwrap().unwrap();
    let opening = Opening { order: Order::Draw, ..Opening::default() };
    let policy = Policy { opening: Some(opening), ..stored.policy };
    let change = PolicyChange { policy, opening: OpeningChange::Replaced, reveal: Some(reveal) };
    let now = harness.clock.now_ms();
    harness.store.set_policy(&item("concert"), &change, stored.revision, now).await.unwrap();
}

async fn marked(harness: &SchedulerHarness) -> usize {
    let mut items = 0;
    for partition in 0..harness.store.partitions() {
        items += harness.store.changed_controls(partition, 100).await.unwrap().len();
    }
    items
}

#[tokio::test]
async fn changed_settings_are_published_whole_and_the_reveal_of_a_draw_stays_secret() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let harness = SchedulerHarness::open(1).await;
    harness.put("concert", 10, "{}").await;
    plan_draw(&harness, Reveal([9; 32])).await;
    harness.store.set_paused(&item("concert"), true, harness.clock.now_ms()).await.unwrap();
    assert_eq!(marked(&harness).await, 1);

    broker.pause().unwrap();
    let failing = relay(&harness, &broker, Duration::from_millis(300));
    assert!(matches!(failing.publish_controls().await, Err(RelayError::Kafka(_))));
    assert_eq!(marked(&harness).await, 1, "not confirmed");
    broker.resume().unwrap();
    let relay = relay(&harness, &broker, TEST_TIMEOUT);
    assert_eq!(relay.publish_controls().await.unwrap(), 1);
    assert_eq!((marked(&harness).await, pending(&harness).await), (0, 0));
    assert_eq!(relay.publish_controls().await.unwrap(), 0);

    let expected = harness.store.control(&item("concert")).await.unwrap().unwrap();
    let topic = TopicReader::open(broker.bootstrap_servers(), "control.changed").await.unwrap();
    let record = topic.take(1).await.remove(0);
    let body = record.body.unwrap();
    assert!(!String::from_utf8_lossy(&body).contains(&"09".repeat(32)));
    let read: ControlChanged = serde_json::from_slice(&body).unwrap();
    let id = format!("concert:{}", expected.control_version);
    assert_eq!((record.key.as_deref(), &record.headers["ce_id"]), (Some(&b"concert"[..]), &id));
    let mut control = read.into_control(&keys()).control;
    // Not part of the settings.
    let (published, stored) = (control.item.as_mut().unwrap(), expected.item.as_ref().unwrap());
    (published.revision, published.updated_at) = (stored.revision, stored.updated_at);
    assert_eq!(control, expected);
}

#[tokio::test]
async fn without_kafka_marks_of_changed_settings_are_dropped() {
    let harness = SchedulerHarness::open(1).await;
    for id in ["a", "b", "c"] {
        harness.put(id, 10, "{}").await;
    }
    assert_eq!(marked(&harness).await, 3);
    let relay = Relay::new(harness.store.clone(), Arc::new(DiscardSink));
    assert_eq!(relay.publish_controls().await.unwrap(), 3);
    assert_eq!(marked(&harness).await, 0);
}

/// An order service that reads `token.activated` from the start.
struct OrderService(StreamConsumer);

impl OrderService {
    fn subscribe(broker: &EmbeddedBroker) -> Self {
        Self::subscribe_to(broker.bootstrap_servers(), 3)
    }

    fn subscribe_to(brokers: &str, partitions: i32) -> Self {
        let consumer: StreamConsumer = ClientConfig::new()
            .set("bootstrap.servers", brokers)
            .set("group.id", "orders")
            .create()
            .unwrap();
        let mut all = TopicPartitionList::new();
        for partition in 0..partitions {
            all.add_partition_offset("token.activated", partition, Offset::Beginning).unwrap();
        }
        consumer.assign(&all).unwrap();
        Self(consumer)
    }

    /// The next event and its id in the header.
    async fn next(&self) -> (TokenActivated, String) {
        let message = tokio::time::timeout(TEST_TIMEOUT, self.0.recv()).await.unwrap().unwrap();
        let headers = message.headers().unwrap();
        let id = headers.iter().find(|header| header.key == "ce_id").unwrap().value.unwrap();
        let event = serde_json::from_slice(message.payload().unwrap()).unwrap();
        (event, String::from_utf8(id.into()).unwrap())
    }
}

/// Reads until this number arrives, and keeps the first delivery of each.
async fn first_deliveries(orders: &OrderService, last: Number) -> Vec<Number> {
    let (mut first, mut known) = (Vec::new(), HashSet::new());
    while first.last() != Some(&last) {
        let (event, _) = orders.next().await;
        if known.insert(event.number) {
            first.push(event.number);
        }
    }
    first
}

/// Admits many users of one line in one tick.
async fn admit_many(harness: &mut SchedulerHarness, users: usize) -> Vec<Number> {
    harness.put("concert", 1_000_000, "{}").await;
    let users: Vec<_> = (0..users).map(|n| user(&format!("person-{n}"))).collect();
    let numbers = harness.join_users("concert", &users).await;
    assert_eq!(harness.tick().await.admitted as usize, users.len());
    numbers
}

async fn pending(harness: &SchedulerHarness) -> u64 {
    pending_in(&harness.store).await
}

async fn pending_in(store: &SharedStore) -> u64 {
    let mut pending = 0;
    for partition in 0..store.partitions() {
        pending += store.outbox_len(partition).await.unwrap();
    }
    pending
}

/// Publishes until the broker does not confirm any more.
async fn publish_until_it_fails(relay: Relay, store: SharedStore) -> RelayError {
    let all = pending_in(&store).await;
    loop {
        match relay.publish_all().await {
            // The first connection to a new broker may take longer than the timeout.
            Err(_) if pending_in(&store).await == all => {}
            Err(error) => return error,
            Ok(_) => {
                assert_ne!(pending_in(&store).await, 0, "all were published before the broker died")
            }
        }
    }
}

#[tokio::test]
async fn events_carry_their_epoch_and_their_sequence() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("a", 100, "{}").await;
    harness.join("a", &["kim", "lee"]).await;
    harness.tick().await;
    harness.tick().await;
    assert_eq!(relay(&harness, &broker, TEST_TIMEOUT).publish_all().await.unwrap(), 2);
    let (orders, mut sequences) = (OrderService::subscribe(&broker), Vec::new());
    for _ in 0..2 {
        let message = tokio::time::timeout(TEST_TIMEOUT, orders.0.recv()).await.unwrap().unwrap();
        let headers = message.headers().unwrap();
        let text = |key| {
            let header = headers.iter().find(|header| header.key == key).unwrap();
            String::from_utf8(header.value.unwrap().into()).unwrap()
        };
        assert!(text("ce_epoch").parse::<u64>().unwrap() > 0);
        sequences.push(text("ce_sequence"));
    }
    assert!(sequences[0] < sequences[1], "{sequences:?}");
}

#[tokio::test]
async fn every_admission_is_published_in_order_with_its_token() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let mut harness = SchedulerHarness::open(100).await;
    let mut joined = BTreeMap::new();
    for id in ["a", "b", "c", "d"] {
        harness.put(id, 100, "{}").await;
        joined.insert(id.to_owned(), harness.join(id, &["kim", "lee", "park"]).await);
    }
    harness.tick().await;
    assert_eq!(relay(&harness, &broker, TEST_TIMEOUT).publish_all().await.unwrap(), 12);
    assert_eq!(pending(&harness).await, 0);
    let orders = OrderService::subscribe(&broker);
    let mut published: BTreeMap<String, Vec<Number>> = BTreeMap::new();
    for _ in 0..12 {
        let (event, id) = orders.next().await;
        assert_eq!(event.event_id.to_string(), id);
        let ticket = keys().verify(&event.item_id, &event.token).unwrap();
        assert_eq!((ticket.user, ticket.number), (event.user_id, event.number));
        published.entry(event.item_id.to_string()).or_default().push(event.number);
    }
    assert_eq!(published, joined);
}

#[tokio::test]
async fn an_event_that_was_published_and_not_removed_is_published_again_with_the_same_id() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    // Two stores with the same history are a leader that died before it removed what it had
    // published, and the next one.
    let (mut dying, mut next) = (SchedulerHarness::open(1).await, SchedulerHarness::open(1).await);
    for harness in [&mut dying, &mut next] {
        harness.put("concert", 10, "{}").await;
        harness.join("concert", &["kim"]).await;
        harness.tick().await;
        assert_eq!(relay(harness, &broker, TEST_TIMEOUT).publish_all().await.unwrap(), 1);
    }
    let orders = OrderService::subscribe(&broker);
    assert_eq!(orders.next().await, orders.next().await);
}

#[tokio::test]
async fn events_stay_in_the_outbox_while_the_broker_is_down_and_admission_continues() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let mut harness = SchedulerHarness::open(1).await;
    harness.put("concert", 10, "{}").await;
    harness.join("concert", &["kim", "lee"]).await;
    harness.tick().await;
    broker.pause().unwrap();
    let failed = relay(&harness, &broker, Duration::from_millis(300)).publish_all().await;
    assert!(matches!(failed, Err(RelayError::Kafka(_))), "{failed:?}");
    assert_eq!(harness.tick().await.admitted, 1);
    assert_eq!(pending(&harness).await, 2);
    broker.resume().unwrap();
    assert_eq!(relay(&harness, &broker, TEST_TIMEOUT).publish_all().await.unwrap(), 2);
    assert_eq!(pending(&harness).await, 0);
    let (first, _) = OrderService::subscribe(&broker).next().await;
    assert_eq!((first.item_id, first.user_id.as_str()), (item("concert"), "kim"));
}

#[tokio::test]
async fn many_admissions_are_published_once_and_in_order() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let mut harness = SchedulerHarness::open(100_000).await;
    let joined = admit_many(&mut harness, 8_000).await;
    assert_eq!(relay(&harness, &broker, TEST_TIMEOUT).publish_all().await.unwrap(), 8_000);
    assert_eq!(pending(&harness).await, 0);
    let orders = OrderService::subscribe(&broker);
    for number in joined {
        assert_eq!(orders.next().await.0.number, number);
    }
}

/// Uses a real broker, because the embedded one does not keep this many messages.
#[tokio::test(flavor = "multi_thread")]
async fn first_deliveries_are_in_order_although_the_broker_died_in_the_middle() {
    /// Enough that the broker dies long before all of them are published.
    const USERS: usize = 90_000;
    let Some(mut kafka) = daegi_testkit::kafka_or_skip().await else { return };
    let mut harness = SchedulerHarness::open(100_000).await;
    let joined = admit_many(&mut harness, USERS).await;
    let relay = relay_to(&harness, &kafka.bootstrap(), Duration::from_secs(5));
    let untouched = || async { pending(&harness).await == USERS as u64 };
    // A separate task, because a call that never waits would not yield.
    let mut publishing = JoinSet::new();
    publishing.spawn(publish_until_it_fails(relay.clone(), harness.store.clone()));
    while untouched().await {
        tokio::task::yield_now().await;
    }
    kafka.kill();
    let interrupted = publishing.join_next().await.unwrap().unwrap();
    assert!(matches!(interrupted, RelayError::Kafka(_)), "{interrupted:?}");
    let left = pending(&harness).await;
    assert!((1..USERS as u64).contains(&left), "{left}");
    kafka.start_again().await.unwrap();
    let empty = || async { relay.publish_all().await.is_ok() && pending(&harness).await == 0 };
    eventually(TEST_TIMEOUT, "the outbox is empty", empty).await;
    let orders = OrderService::subscribe_to(&kafka.bootstrap(), 4);
    let published = first_deliveries(&orders, *joined.last().unwrap()).await;
    assert!(published == joined, "{} of {} in order", common(&published, &joined), joined.len());
}

fn common(published: &[Number], joined: &[Number]) -> usize {
    published.iter().zip(joined).take_while(|(published, joined)| published == joined).count()
}
