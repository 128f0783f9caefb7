//! From the outbox to the order service, through the embedded broker.

use std::collections::BTreeMap;
use std::time::Duration;

use daegi_domain::{Number, TicketKeys, TokenActivated, Topics};
use daegi_kafka::{EmbeddedBroker, Publisher};
use daegi_scheduler::{Outlet, Relay, RelayError};
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::message::{Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::room::{Room, item};

const SOON: Duration = Duration::from_secs(60);
const SECRET: &str = "1:000102030405060708090a0b0c0d0e0f";

fn keys() -> TicketKeys {
    SECRET.parse().unwrap()
}

fn relay(room: &Room, broker: &EmbeddedBroker, patience: Duration) -> Relay {
    let publisher = Publisher::new(broker.bootstrap_servers()).unwrap().with_patience(patience);
    Relay::new(room.store.clone(), Outlet::kafka(publisher, Topics::default(), keys()))
}

/// An order service that reads `token.activated` from its beginning.
struct OrderService(StreamConsumer);

impl OrderService {
    fn listen(broker: &EmbeddedBroker) -> Self {
        let consumer: StreamConsumer = ClientConfig::new()
            .set("bootstrap.servers", broker.bootstrap_servers())
            .set("group.id", "orders")
            .create()
            .unwrap();
        let mut partitions = TopicPartitionList::new();
        for partition in 0..3 {
            let from = Offset::Beginning;
            partitions.add_partition_offset("token.activated", partition, from).unwrap();
        }
        consumer.assign(&partitions).unwrap();
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

async fn pending(room: &Room) -> u64 {
    let mut pending = 0;
    for partition in 0..room.store.partitions() {
        pending += room.store.outbox_len(partition).await.unwrap();
    }
    pending
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
