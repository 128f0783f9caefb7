//! Traces: what a collector and the readers of Kafka learn about a ticket.

mod collector;

use std::time::Duration;

use daegi_domain::{Topics, TraceContext};
use daegi_kafka::EmbeddedBroker;
use daegi_testkit::{TopicReader, free_port};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::member::Fleet;
use crate::room::Room;
use collector::{Collector, Heard};

/// Somebody whose name nobody else has.
const USER: &str = "kim-whom-no-span-may-name";
const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

/// What the next event of a topic says about its trace.
async fn traceparent(broker: &EmbeddedBroker, topic: &str) -> Option<TraceContext> {
    let reader = TopicReader::open(broker.bootstrap_servers(), topic).await.unwrap();
    let event = reader.take(1).await.remove(0);
    event.headers.get("traceparent").map(|text| TraceContext::parse(text).unwrap())
}

fn context(span: &Heard) -> TraceContext {
    TraceContext { trace: span.trace(), span: span.id(), sampled: true }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_is_one_trace_over_two_processes_and_kafka() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let collector = Collector::start().await;
    let fleet = Fleet::new(&redis)
        .with_kafka(broker.bootstrap_servers(), &Topics::default())
        .env("DAEGI_OTLP_ENDPOINT", &collector.url)
        .env("DAEGI_TRACE_RATIO", "1");
    let (api, scheduler) = (fleet.start("daegi-api"), fleet.start("daegi-scheduler"));
    api.wait_ready().await;
    scheduler.wait_ready().await;
    let item = json!({"itemName": "concert", "remainCount": 50, "waitingQueueEnabled": true});
    scheduler.admin(Method::POST, "waiting-item/concert/manually", item).await;

    let line = format!("{}/api/v1/item/concert/waiting-queue", api.public);
    let join = fleet.http.post(line).header("user-id", USER).header("traceparent", CALLER);
    let again = join.try_clone().unwrap();
    let ticket: Value = join.send().await.unwrap().json().await.unwrap();
    // Whoever joins again has their ticket already, and it has its span.
    assert_eq!(again.send().await.unwrap().status(), StatusCode::OK);
    let activated = traceparent(&broker, "token.activated").await;
    let complete = format!("{}/internal/v1/item/concert/entry/complete", api.internal);
    let complete = fleet.http.post(complete).json(&json!({ "token": ticket["token"] }));
    assert!(complete.send().await.unwrap().status().is_success());
    let closed = traceparent(&broker, "token.closed").await;
    // What is not sent yet is sent before a process ends.
    assert_eq!(api.terminate().code(), Some(0));
    assert_eq!(scheduler.terminate().code(), Some(0));

    let [join, complete] = ["join", "complete"].map(|name| collector.only(name, "daegi-api"));
    let [activate, close] =
        ["activate", "close"].map(|name| collector.only(name, "daegi-scheduler"));
    assert_eq!(join.parent(), None);
    assert_eq!(join.links(), [TraceContext::parse(CALLER).unwrap()]);
    for later in [&activate, &complete, &close] {
        assert_eq!((later.trace(), later.parent()), (join.trace(), Some(join.id())));
        assert!(join.began() <= later.began() && later.began() <= later.ended());
    }
    assert_eq!(activated, Some(context(&activate)));
    assert_eq!(closed, Some(context(&close)));
    assert_eq!(close.said("daegi.reason"), Some("COMPLETED".to_owned()));
    assert_eq!(activate.said("daegi.item"), Some("concert".to_owned()));
    assert!(!collector.has_heard(USER));
}

/// A room whose only item has let one person in, and the header of that event.
async fn admitted(args: &[&str]) -> (Room, Option<TraceContext>) {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let args = [&["--kafka", broker.bootstrap_servers()], args].concat();
    let room = Room::open("memory", None, &args).await;
    room.stock("concert", 10).await;
    room.ticket("concert", USER).await;
    room.quota(1).await;
    let told = traceparent(&broker, "token.activated").await;
    (room, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_nobody_hears_of_traces() {
    let (room, told) = admitted(&["--trace-ratio", "1"]).await;
    assert_eq!(told, None);
    room.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_that_is_not_kept_is_told_as_such_and_not_sent() {
    let collector = Collector::start().await;
    let args = ["--otlp-endpoint", &collector.url, "--trace-ratio", "0"];
    let (room, told) = admitted(&args).await;
    room.close().await;
    assert!(!told.unwrap().sampled);
    assert_eq!(collector.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_costs_nobody_anything() {
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let (room, told) = admitted(&["--otlp-endpoint", &nobody, "--trace-ratio", "1"]).await;
    assert!(told.unwrap().sampled);
    let closing = tokio::time::timeout(Duration::from_secs(5), room.close());
    closing.await.unwrap();
}
