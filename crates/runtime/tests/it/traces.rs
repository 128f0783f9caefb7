//! Traces where the collector is no help: nobody may notice.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::time::Duration;

use axum::http::HeaderMap;
use daegi_domain::{ItemId, Number, Step};
use daegi_runtime::traces::{Begun, Call, SPANS};
use daegi_runtime::{Role, Shutdown, Traces, telemetry};
use tokio::net::TcpListener;

use crate::support::parse;

/// More than wait to be sent.
const MANY: u64 = 10_000;

fn traces(endpoint: &str, shutdown: &Shutdown) -> Traces {
    let args = ["--otlp-endpoint", endpoint, "--trace-ratio", "1"];
    let config = parse(Role::AllInOne, &args, &[]).unwrap();
    telemetry::init(&config);
    Traces::start(&config, shutdown)
}

fn join(traces: &Traces, begun: &Begun, number: u64) {
    traces.answered(Call::Join, &ItemId::parse("concert").unwrap(), Number(number), begun);
}

/// How many spans had this result, in all tests of this process.
fn spans(result: &str) -> u64 {
    let text = telemetry::render();
    let name = format!("{SPANS}{{result=\"{result}\"}} ");
    let count = text.lines().find_map(|line| line.strip_prefix(&name));
    count.map_or(0, |count| count.parse().unwrap())
}

#[test]
fn without_a_collector_there_is_nothing() {
    let (traces, item) = (Traces::default(), ItemId::parse("concert").unwrap());
    assert!(!traces.is_on());
    assert!(traces.begin(&HeaderMap::new()).is_none());
    assert!(traces.context(Step::Activate, &item, Number(1)).is_none());
    assert!(traces.step(Step::Activate, &item, Number(1), 0).is_none());
}

#[tokio::test]
async fn nobody_waits_for_a_collector_that_is_away() {
    let (shutdown, listener) = (Shutdown::new(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let traces = traces(&endpoint, &shutdown);
    let begun = traces.begin(&HeaderMap::new()).unwrap();
    // Nothing can be sent meanwhile: there is no await between these, and one thread.
    (0..MANY).for_each(|number| join(&traces, &begun, number));
    let dropped = spans("dropped");
    assert!((1..MANY).contains(&dropped), "{dropped}");
    drop(traces);
    shutdown.now();
    shutdown.wait(Duration::from_secs(5)).await.unwrap();
    assert!(spans("lost") >= MANY - dropped, "all that was not dropped");
}

#[tokio::test]
async fn a_collector_that_is_silent_does_not_hold_up_the_end() {
    let shutdown = Shutdown::new();
    // Connections are made, and nobody ever reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let traces = traces(&format!("http://{}", silent.local_addr().unwrap()), &shutdown);
    join(&traces, &traces.begin(&HeaderMap::new()).unwrap(), 1);
    drop(traces);
    shutdown.now();
    shutdown.wait(Duration::from_secs(4)).await.unwrap();
}
