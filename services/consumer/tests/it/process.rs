//! The consumer as a process: without its store, and without Kafka.

use std::process::{Command, Stdio};
use std::time::Duration;

use daegi_testkit::{ChildProcess, eventually, free_port, redis_or_skip};

const TEST_TIMEOUT: Duration = Duration::from_secs(10);

fn start(address: &str, store: &str, kafka: &str) -> ChildProcess {
    let child = Command::new(env!("CARGO_BIN_EXE_daegi-consumer"))
        .env_clear()
        .env("DAEGI_STORE", store)
        .env("DAEGI_KAFKA", kafka)
        .env("DAEGI_INTERNAL_ADDR", address)
        .env("DAEGI_TICKET_SECRETS", "1:000102030405060708090a0b0c0d0e0f")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    ChildProcess::from(child)
}

#[tokio::test]
async fn without_kafka_the_lag_is_0() {
    let Some(redis) = redis_or_skip().await else { return };
    let address = format!("127.0.0.1:{}", free_port());
    let _consumer = start(&address, &redis.url(), "off");
    let lines = ["item.changed", "order.closed"]
        .map(|topic| format!("daegi_consumer_lag{{topic=\"{topic}\"}} 0"));
    eventually(TEST_TIMEOUT, "it says so", async || {
        let Ok(answer) = reqwest::get(format!("http://{address}/metrics")).await else {
            return false;
        };
        let metrics = answer.text().await.unwrap_or_default();
        lines.iter().all(|line| metrics.contains(line))
    })
    .await;
}

#[tokio::test]
async fn without_its_store_it_is_alive_but_not_ready_and_stops_on_sigterm() {
    let address = format!("127.0.0.1:{}", free_port());
    let mut child = start(&address, "redis://127.0.0.1:1", "127.0.0.1:1");
    let status = async |path: &str| {
        let answer = reqwest::get(format!("http://{address}{path}")).await;
        answer.map(|answer| answer.status().as_u16()).ok()
    };
    eventually(TEST_TIMEOUT, "the consumer is alive", async || status("/livez").await == Some(200))
        .await;
    assert_eq!(status("/readyz").await, Some(503), "its store is unreachable");
    assert_eq!(status("/metrics").await, Some(200));
    assert_eq!(status("/internal/admin/v1/leader").await, Some(404), "it is not a scheduler");
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
