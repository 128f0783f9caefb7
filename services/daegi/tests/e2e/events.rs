//! All events over Kafka: the product service publishes an item, a user is admitted, the order service
//! receives the admission and publishes the order, and the entry ends.

use std::time::Duration;

use daegi_domain::Topics;
use daegi_kafka::{EmbeddedBroker, Publisher, Record};
use daegi_testkit::eventually;
use rdkafka::ClientConfig;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::message::Message;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::harness::DaegiHarness;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the first event of `token.activated`.
async fn activated(brokers: &str) -> Value {
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "orders")
        .set("auto.offset.reset", "earliest")
        .create()
        .unwrap();
    consumer.subscribe(&["token.activated"]).unwrap();
    let message = tokio::time::timeout(TEST_TIMEOUT, consumer.recv()).await.unwrap().unwrap();
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
    item_to_order(broker.bootstrap_servers()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn product_and_order_services_move_the_line_over_a_real_broker() {
    let Some(broker) = daegi_testkit::kafka_or_skip().await else { return };
    item_to_order(&broker.bootstrap()).await;
}

async fn item_to_order(brokers: &str) {
    let args = ["--kafka", brokers];
    let harness = DaegiHarness::open("memory", None, &args).await;
    let item = json!({
        "itemId": "concert", "itemName": "Friday 8 pm", "remainCount": 10, "version": 1,
        "waitingQueueEnabled": true, "isWaitingQueueTargetItem": true,
        "occurredAt": "2026-01-01T00:00:00Z"
    });
    publish(brokers, "item.changed", &item).await;
    eventually(TEST_TIMEOUT, "the line is open", async || {
        harness.join("concert", "kim").await.status() == StatusCode::CREATED
    })
    .await;
    harness.quota(1).await;
    let event = activated(brokers).await;
    assert_eq!((&event["itemId"], &event["userId"]), (&json!("concert"), &json!("kim")));

    let order = json!({
        "eventId": "order-1", "itemId": "concert", "userId": "kim", "token": event["token"],
        "outcome": "COMPLETED", "occurredAt": "2026-01-01T00:00:01Z"
    });
    publish(brokers, "order.closed", &order).await;
    let token = event["token"].as_str().unwrap();
    eventually(TEST_TIMEOUT, "the order has ended the ticket", async || {
        harness.poll_ok("concert", token).await["status"] == "COMPLETED"
    })
    .await;
    assert_eq!(harness.counts("concert").await, (0, 0));
    harness.close().await;
}
