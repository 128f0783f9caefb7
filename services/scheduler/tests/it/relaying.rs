//! From the outbox to the order service, through the embedded broker.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use daegi_domain::{Number, TicketKeys, TokenActivated, Topics};
use daegi_kafka::{EmbeddedBroker, Publisher};
use daegi_scheduler::{Outlet, Relay, RelayError};
use daegi_store::SharedStore;
use daegi_testkit::eventually;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::message::{Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tokio::task::JoinSet;

use crate::room::{Room, item, user};

const SOON: Duration = Duration::from_secs(60);
const SECRET: &str = "1:000102030405060708090a0b0c0d0e0f";

fn keys() -> TicketKeys {
    SECRET.parse().unwrap()
}

fn relay(room: &Room, broker: &EmbeddedBroker, patience: Duration) -> Relay {
    relay_to(room, broker.bootstrap_servers(), patience)
}

fn relay_to(room: &Room, brokers: &str, patience: Duration) -> Relay {
    let publisher = Publisher::new(brokers).unwrap().with_patience(patience);
    Relay::new(room.store.clone(), Outlet::kafka(publisher, Topics::default(), keys()))
}

/// An order service that reads `token.activated` from its beginning.
struct OrderService(StreamConsumer);

impl OrderService {
    fn listen(broker: &EmbeddedBroker) -> Self {
        Self::listen_at(broker.bootstrap_servers(), 3)
    }

    fn listen_at(brokers: &str, partitions: i32) -> Self {
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
        let message = tokio::time::timeout(SOON, self.0.recv()).await.unwrap().unwrap();
        let headers = message.headers().unwrap();
        let id = headers.iter().find(|header| header.key == "ce_id").unwrap().value.unwrap();
        let event = serde_json::from_slice(message.payload().unwrap()).unwrap();
        (event, String::from_utf8(id.into()).unwrap())
    }
}

/// Reads until this number is told of, and keeps the first delivery of each.
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

/// Many people of one line, let in as fast as a leader may.
async fn crowd(room: &mut Room, people: usize) -> Vec<Number> {
    room.put("concert", 1_000_000, "{}").await;
    let users: Vec<_> = (0..people).map(|n| user(&format!("person-{n}"))).collect();
    let numbers = room.join_users("concert", &users).await;
    assert_eq!(room.tick().await.admitted as usize, people);
    numbers
}

async fn pending(room: &Room) -> u64 {
    pending_in(&room.store).await
}

async fn pending_in(store: &SharedStore) -> u64 {
    let mut pending = 0;
    for partition in 0..store.partitions() {
        pending += store.outbox_len(partition).await.unwrap();
    }
    pending
}

/// Empties the outbox until the broker does not answer any more.
async fn step_until_it_fails(relay: Relay, store: SharedStore) -> RelayError {
    let all = pending_in(&store).await;
    loop {
        match relay.step().await {
            // The first contact with a new broker may take longer than the patience.
            Err(_) if pending_in(&store).await == all => {}
            Err(error) => return error,
            Ok(_) => assert_ne!(pending_in(&store).await, 0, "all told of before the broker died"),
        }
    }
}

#[tokio::test]
async fn events_say_in_which_term_and_in_which_order_they_happened() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let mut room = Room::open(1).await;
    room.put("a", 100, "{}").await;
    room.join("a", &["kim", "lee"]).await;
    room.tick().await;
    room.tick().await;
    assert_eq!(relay(&room, &broker, SOON).step().await.unwrap(), 2);
    let (orders, mut sequences) = (OrderService::listen(&broker), Vec::new());
    for _ in 0..2 {
        let message = tokio::time::timeout(SOON, orders.0.recv()).await.unwrap().unwrap();
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
async fn everybody_let_in_is_told_of_in_order_with_their_token() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let mut room = Room::open(100).await;
    let mut joined = BTreeMap::new();
    for id in ["a", "b", "c", "d"] {
        room.put(id, 100, "{}").await;
        joined.insert(id.to_owned(), room.join(id, &["kim", "lee", "park"]).await);
    }
    room.tick().await;
    assert_eq!(relay(&room, &broker, SOON).step().await.unwrap(), 12);
    assert_eq!(pending(&room).await, 0);
    let orders = OrderService::listen(&broker);
    let mut told: BTreeMap<String, Vec<Number>> = BTreeMap::new();
    for _ in 0..12 {
        let (event, id) = orders.next().await;
        assert_eq!(event.event_id.to_string(), id);
        let ticket = keys().verify(&event.item_id, &event.token).unwrap();
        assert_eq!((ticket.user, ticket.number), (event.user_id, event.number));
        told.entry(event.item_id.to_string()).or_default().push(event.number);
    }
    assert_eq!(told, joined);
}

#[tokio::test]
async fn an_event_that_was_published_but_not_removed_comes_again_with_the_same_id() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    // Two stores with the same history are a leader that died before it removed what it had
    // published, and the next one.
    let (mut dying, mut next) = (Room::open(1).await, Room::open(1).await);
    for room in [&mut dying, &mut next] {
        room.put("concert", 10, "{}").await;
        room.join("concert", &["kim"]).await;
        room.tick().await;
        assert_eq!(relay(room, &broker, SOON).step().await.unwrap(), 1);
    }
    let orders = OrderService::listen(&broker);
    assert_eq!(orders.next().await, orders.next().await);
}

#[tokio::test]
async fn nothing_leaves_the_outbox_while_the_broker_is_away_and_admission_goes_on() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let mut room = Room::open(1).await;
    room.put("concert", 10, "{}").await;
    room.join("concert", &["kim", "lee"]).await;
    room.tick().await;
    broker.pause().unwrap();
    let away = relay(&room, &broker, Duration::from_millis(300)).step().await;
    assert!(matches!(away, Err(RelayError::Kafka(_))), "{away:?}");
    assert_eq!(room.tick().await.admitted, 1);
    assert_eq!(pending(&room).await, 2);
    broker.resume().unwrap();
    assert_eq!(relay(&room, &broker, SOON).step().await.unwrap(), 2);
    assert_eq!(pending(&room).await, 0);
    let (first, _) = OrderService::listen(&broker).next().await;
    assert_eq!((first.item_id, first.user_id.as_str()), (item("concert"), "kim"));
}

#[tokio::test]
async fn a_crowd_is_told_of_once_and_in_order() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let mut room = Room::open(100_000).await;
    let joined = crowd(&mut room, 8_000).await;
    assert_eq!(relay(&room, &broker, SOON).step().await.unwrap(), 8_000);
    assert_eq!(pending(&room).await, 0);
    let orders = OrderService::listen(&broker);
    for number in joined {
        assert_eq!(orders.next().await.0.number, number);
    }
}

/// A real broker, because the embedded one keeps too little to tell all of this from its beginning.
#[tokio::test(flavor = "multi_thread")]
async fn first_deliveries_are_in_order_although_the_broker_died_in_the_middle() {
    /// So many that the broker dies long before all of them are told of.
    const PEOPLE: usize = 90_000;
    let Some(mut kafka) = daegi_testkit::kafka_or_loud().await else { return };
    let mut room = Room::open(100_000).await;
    let joined = crowd(&mut room, PEOPLE).await;
    let relay = relay_to(&room, &kafka.bootstrap(), Duration::from_secs(5));
    let untouched = || async { pending(&room).await == PEOPLE as u64 };
    // A task of its own: a step in which every wait is over already would let nobody else run.
    let mut stepping = JoinSet::new();
    stepping.spawn(step_until_it_fails(relay.clone(), room.store.clone()));
    while untouched().await {
        tokio::task::yield_now().await;
    }
    kafka.kill();
    let interrupted = stepping.join_next().await.unwrap().unwrap();
    assert!(matches!(interrupted, RelayError::Kafka(_)), "{interrupted:?}");
    let left = pending(&room).await;
    assert!((1..PEOPLE as u64).contains(&left), "{left}");
    kafka.start_again().await.unwrap();
    let empty = || async { relay.step().await.is_ok() && pending(&room).await == 0 };
    eventually(SOON, "the outbox is empty", empty).await;
    let orders = OrderService::listen_at(&kafka.bootstrap(), 4);
    let told = first_deliveries(&orders, *joined.last().unwrap()).await;
    assert!(told == joined, "{} of {} in order", common(&told, &joined), joined.len());
}

fn common(told: &[Number], joined: &[Number]) -> usize {
    told.iter().zip(joined).take_while(|(told, joined)| told == joined).count()
}
