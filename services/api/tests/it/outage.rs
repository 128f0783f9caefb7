use std::time::Duration;

use daegi_testkit::eventually;
use tokio::time::{Instant, sleep};

use crate::harness::{Harness, TEST_TIMEOUT, TestResponse, id, line, ticket};
use crate::spy_store::StoreMode;

#[track_caller]
fn assert_unavailable(answer: &TestResponse, began: Instant) {
    answer.assert_problem(503, "UNAVAILABLE");
    let after: u32 = answer.header("retry-after").parse().unwrap();
    assert!((1..=3).contains(&after), "{after}");
    assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
}

async fn requests_fail_fast_and_recover(mode: StoreMode) {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    harness.store.set_mode(mode);
    // What is known is good for a second, and no longer.
    sleep(Duration::from_millis(2500)).await;
    let uri = ticket("concert", &token);
    for _ in 0..3 {
        let began = Instant::now();
        assert_unavailable(&harness.poll("concert", &token).await, began);
        let began = Instant::now();
        assert_unavailable(&harness.join("concert", "lee").await, began);
        let began = Instant::now();
        assert_unavailable(&harness.get(&line("concert")).await, began);
        let began = Instant::now();
        assert_unavailable(&harness.get(&line("unknown")).await, began);
        let began = Instant::now();
        assert_unavailable(&harness.leave("concert", &token).await, began);
        let began = Instant::now();
        assert_unavailable(&harness.get(&format!("{uri}?waitMs=30000")).await, began);
        let verify = "/internal/v1/item/concert/entry/verify";
        let began = Instant::now();
        let body = serde_json::json!({ "token": token }).to_string();
        assert_unavailable(&harness.post(verify, &body).await, began);
    }
    assert!(harness.health.check().is_ok(), "readiness does not flap with the store");

    harness.store.set_mode(StoreMode::Up);
    eventually(TEST_TIMEOUT, "polls succeed again", async || {
        harness.poll("concert", &token).await.json()["position"] == 1
    })
    .await;
    assert_eq!(harness.join("concert", "lee").await.json()["position"], 2);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_refusing_store_is_reported_within_a_second_and_recovers() {
    requests_fail_fast_and_recover(StoreMode::Refusing).await;
}

#[tokio::test(start_paused = true)]
async fn a_hanging_store_is_reported_within_a_second_and_recovers() {
    requests_fail_fast_and_recover(StoreMode::Hanging).await;
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_does_not_affect_polls() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    harness.poll("concert", &token).await;
    harness.store.set_mode(StoreMode::Refusing);
    assert_eq!(harness.poll("concert", &token).await.status, 200);
    harness.store.set_mode(StoreMode::Up);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_failing_store_is_not_called_once_per_request() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    harness.store.set_mode(StoreMode::Refusing);
    sleep(Duration::from_millis(2500)).await;
    let (before, began) = (harness.store.calls("settings"), Instant::now());
    for _ in 0..20 {
        futures_util::future::join_all((0..50).map(|_| harness.poll("concert", &token))).await;
    }
    let calls = harness.store.calls("settings") - before;
    let rounds = usize::try_from(began.elapsed().as_millis() / 200).unwrap() + 2;
    assert!(calls <= rounds, "{calls} calls in {:?} for 1000 polls", began.elapsed());
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn marks_survive_an_outage() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    let number = harness.number("concert", &token);
    harness.store.set_mode(StoreMode::Refusing);
    sleep(Duration::from_secs(3)).await;
    assert!(harness.store.marks(&id("concert"), number) == 0);
    harness.store.set_mode(StoreMode::Up);
    eventually(TEST_TIMEOUT, "the mark arrives", async || {
        harness.store.marks(&id("concert"), number) > 0
    })
    .await;
    harness.end().await;
}
