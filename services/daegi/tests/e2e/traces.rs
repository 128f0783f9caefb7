//! Traces: the spans of a ticket at a collector, and `traceparent` in Kafka headers.

mod collector;

use std::time::Duration;

use daegi_domain::{Topics, TraceContext};
use daegi_kafka::EmbeddedBroker;
use daegi_testkit::{TopicReader, free_port};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::DaegiHarness;
use crate::processes::Fleet;
use collector::{Collector, ReceivedSpan};

/// A user id that occurs in no other data.
const USER: &str = "kim-whom-no-span-may-name";
const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

/// Returns the trace context in the next event of a topic.
async fn traceparent(broker: &EmbeddedBroker, topic: &str) -> Option<TraceContext> {
    let reader = TopicReader::open(broker.bootstrap_servers(), topic).await.unwrap();
    let event = reader.take(1).await.remove(0);
    event.headers.get("traceparent").map(|text| TraceContext::parse(text).unwrap())
}

fn context(span: &ReceivedSpan) -> TraceContext {
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
    // A repeated join returns the same ticket and records no second span.
    assert_eq!(again.send().await.unwrap().status(), StatusCode::OK);
    let activated = traceparent(&broker, "token.activated").await;
    let complete = format!("{}/internal/v1/item/concert/entry/complete", api.internal);
    let complete = fleet.http.post(complete).json(&json!({ "token": ticket["token"] }));
    assert!(complete.send().await.unwrap().status().is_success());
    let closed = traceparent(&broker, "token.closed").await;
    // A process exports its remaining spans before it exits.
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
    assert_eq!(close.attribute("daegi.reason"), Some("COMPLETED".to_owned()));
    assert_eq!(activate.attribute("daegi.item"), Some("concert".to_owned()));
    assert!(!collector.received_text(USER));
}

/// Starts a harness, admits one user, and returns the trace context of that event.
async fn admitted(args: &[&str]) -> (DaegiHarness, Option<TraceContext>) {
    let broker = EmbeddedBroker::start(&Topics::default()).unwrap();
    let args = [&["--kafka", broker.bootstrap_servers()], args].concat();
    let harness = DaegiHarness::open("memory", None, &args).await;
    harness.stock("concert", 10).await;
    harness.ticket("concert", USER).await;
    harness.quota(1).await;
    let context = traceparent(&broker, "token.activated").await;
    (harness, context)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_collector_events_have_no_trace_context() {
    let (harness, context) = admitted(&["--trace-ratio", "1"]).await;
    assert_eq!(context, None);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsampled_trace_is_flagged_in_events_and_not_exported() {
    let collector = Collector::start().await;
    let args = ["--otlp-endpoint", &collector.url, "--trace-ratio", "0"];
    let (harness, context) = admitted(&args).await;
    harness.close().await;
    assert!(!context.unwrap().sampled);
    assert_eq!(collector.requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_collector_delays_neither_admission_nor_shutdown() {
    let unused = format!("http://127.0.0.1:{}", free_port());
    let (harness, context) = admitted(&["--otlp-endpoint", &unused, "--trace-ratio", "1"]).await;
    assert!(context.unwrap().sampled);
    let closing = tokio::time::timeout(Duration::from_secs(5), harness.close());
    closing.await.unwrap();
}
