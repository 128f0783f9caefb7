//! The whole circle over Kafka: a product is announced, a person is let in, the order service
//! hears of it and reports the order, the slot is free again.

use std::time::Duration;

use daegi_domain::Topics;
use daegi_kafka::{EmbeddedBroker, Publisher, Record};
use daegi_testkit::eventually;
use rdkafka::ClientConfig;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::message::Message;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::room::Room;

const SOON: Duration = Duration::from_secs(60);

/// The first event of `token.activated`.
async fn activated(brokers: &str) -> Value {
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "orders")
        .set("auto.offset.reset", "earliest")
        .create()
        .unwrap();
    consumer.subscribe(&["token.activated"]).unwrap();
    let message = tokio::time::timeout(SOON, consumer.recv()).await.unwrap().unwrap();
    serde_json::from_slice(message.payload().unwrap()).unwrap()
}

async fn publish(brokers: &str, topic: &str, body: &Value) {
    let publisher = Publisher::new(brokers).unwrap();
    let record = Record::raw(topic, "concert", Some(body.to_string().as_bytes()));
    publisher.publish(&[record]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn product_and_order_services_move_the_line_over_the_embedded_broker() {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    whole_circle(broker.bootstrap_servers()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn product_and_order_services_move_the_line_over_a_real_broker() {
    let Some(broker) = daegi_testkit::kafka_or_skip().await else { return };
    whole_circle(&broker.bootstrap()).await;
}

async fn whole_circle(brokers: &str) {
    let args = ["--kafka", brokers];
    let room = Room::open("memory", None, &args).await;
    let item = json!({
        "itemId": "concert", "itemName": "Friday 8 pm", "remainCount": 10, "version": 1,
        "waitingQueueEnabled": true, "isWaitingQueueTargetItem": true,
        "occurredAt": "2026-01-01T00:00:00Z"
    });
    publish(brokers, "item.changed", &item).await;
    eventually(SOON, "the line is open", async || {
        room.join("concert", "kim").await.status() == StatusCode::CREATED
    })
    .await;
    room.quota(1).await;
    let event = activated(brokers).await;
    assert_eq!((&event["itemId"], &event["userId"]), (&json!("concert"), &json!("kim")));

    let order = json!({
        "eventId": "order-1", "itemId": "concert", "userId": "kim", "token": event["token"],
        "outcome": "COMPLETED", "occurredAt": "2026-01-01T00:00:01Z"
    });
    publish(brokers, "order.closed", &order).await;
    let token = event["token"].as_str().unwrap();
    eventually(SOON, "the order is known", async || {
        room.poll_ok("concert", token).await["status"] == "COMPLETED"
    })
    .await;
    assert_eq!(room.counts("concert").await, (0, 0));
    room.close().await;
}
