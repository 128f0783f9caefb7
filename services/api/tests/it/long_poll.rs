use std::sync::Arc;
use std::time::Duration;

use daegi_store::ItemStore;
use tokio::time::Instant;

use crate::harness::{Harness, id, ticket};

fn held(item: &str, token: &str, ms: u64) -> String {
    format!("{}?waitMs={ms}", ticket(item, token))
}

/// Joins two users and returns their tokens.
async fn listener() -> (Harness, String, String) {
    let harness = Harness::with_item("concert").await;
    let first = harness.token("concert", "kim").await;
    let second = harness.token("concert", "lee").await;
    assert_eq!(harness.poll("concert", &second).await.json()["position"], 2);
    (harness, first, second)
}

#[tokio::test(start_paused = true)]
async fn a_change_ends_the_long_poll() {
    let (harness, first, second) = listener().await;
    let (uri, began) = (held("concert", &second, 30_000), Instant::now());
    let (response, left) = tokio::join!(harness.get(&uri), harness.leave("concert", &first));
    assert_eq!(left.status, 204);
    assert_eq!(response.json()["position"], 1);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_line_state_is_news() {
    let (harness, _, second) = listener().await;
    let (uri, began) = (held("concert", &second, 30_000), Instant::now());
    let (response, ()) = tokio::join!(harness.get(&uri), harness.put_item("concert", 0, true));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(response.json()["lineState"], "SOLD_OUT");
    assert_eq!(response.json()["status"], "WAITING", "the line is kept");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn admission_is_news_and_brings_the_pass() {
    let (harness, first, _) = listener().await;
    let (uri, began) = (held("concert", &first, 30_000), Instant::now());
    let (response, ()) = tokio::join!(harness.get(&uri), harness.admit("concert", 1));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(response.json()["status"], "ENTERABLE");
    assert!(response.json()["pass"].is_string());
    let (began, again) = (Instant::now(), harness.get(&uri).await);
    assert_eq!(again.json()["status"], "ENTERABLE");
    assert!(began.elapsed() < Duration::from_secs(1), "only who waits is kept waiting");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_news_the_answer_comes_when_the_time_is_up() {
    let (harness, _, second) = listener().await;
    let began = Instant::now();
    let response = harness.get(&held("concert", &second, 20_000)).await;
    assert_eq!(response.json()["position"], 2);
    let took = began.elapsed();
    assert!((20_000..21_000).contains(&took.as_millis()), "{took:?}");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn later_joins_do_not_end_the_long_poll() {
    let (harness, _, second) = listener().await;
    let began = Instant::now();
    let uri = held("concert", &second, 5_000);
    let (response, _) = tokio::join!(harness.get(&uri), harness.join("concert", "park"));
    assert!(began.elapsed() >= Duration::from_secs(5));
    assert_eq!(response.json()["waitingCount"], 3, "but the response includes them");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn long_polls_need_no_store_calls() {
    let (harness, _, second) = listener().await;
    let harness = Arc::new(harness);
    let (before, began) = (harness.store.calls("snapshot"), Instant::now());
    let uri = held("concert", &second, 10_000);
    futures_util::future::join_all((0..500).map(|_| harness.get(&uri))).await;
    let looks = harness.store.calls("snapshot") - before;
    assert!(looks as u128 <= began.elapsed().as_millis() / 190 + 2, "{looks} looks");
    assert_eq!(harness.store.calls("resolve"), 0);
    Arc::into_inner(harness).unwrap().end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_item_ends_the_long_poll() {
    let (harness, _, second) = listener().await;
    let (uri, began) = (held("concert", &second, 30_000), Instant::now());
    let item = id("concert");
    let (response, gone) =
        tokio::join!(harness.get(&uri), harness.store.remove_item(&item, harness.clock.now_ms()));
    gone.unwrap();
    response.assert_problem(404, "ITEM_NOT_FOUND");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_long_poll_with_a_response() {
    let (harness, _, second) = listener().await;
    let (uri, began) = (held("concert", &second, 30_000), Instant::now());
    let (response, ()) = tokio::join!(harness.get(&uri), async { harness.shutdown.stop_now() });
    assert_eq!(response.json()["position"], 2);
    assert!(began.elapsed() < Duration::from_secs(1));
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_keeps_its_ticket_marked_as_seen() {
    let (harness, _, second) = listener().await;
    harness.get(&held("concert", &second, 29_000)).await;
    let number = harness.number("concert", &second);
    let marks = harness.store.marks(&id("concert"), number);
    assert!(marks >= 5, "{marks} marks in 29 s are too few for a grace period of 10 s");
    harness.end().await;
}
