use std::sync::Arc;
use std::time::Duration;

use daegi_store::Store;
use tokio::time::Instant;

use crate::harness::{World, id, ticket};

fn held(item: &str, token: &str, ms: u64) -> String {
    format!("{}?waitMs={ms}", ticket(item, token))
}

/// Two people in a line, the second of whom listens.
async fn listener() -> (World, String, String) {
    let world = World::with_item("concert").await;
    let first = world.token("concert", "kim").await;
    let second = world.token("concert", "lee").await;
    assert_eq!(world.poll("concert", &second).await.json()["position"], 2);
    (world, first, second)
}

#[tokio::test(start_paused = true)]
async fn news_end_the_wait() {
    let (world, first, second) = listener().await;
    let (uri, began) = (held("concert", &second, 30_000), Instant::now());
    let (heard, left) = tokio::join!(world.get(&uri), world.leave("concert", &first));
    assert_eq!(left.status, 204);
    assert_eq!(heard.json()["position"], 1);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_line_state_is_news() {
    let (world, _, second) = listener().await;
    let (uri, began) = (held("concert", &second, 30_000), Instant::now());
    let (heard, ()) = tokio::join!(world.get(&uri), world.put_item("concert", 0, true));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(heard.json()["lineState"], "SOLD_OUT");
    assert_eq!(heard.json()["status"], "WAITING", "the line is kept");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn admission_is_news_and_brings_the_pass() {
    let (world, first, _) = listener().await;
    let (uri, began) = (held("concert", &first, 30_000), Instant::now());
    let (heard, ()) = tokio::join!(world.get(&uri), world.admit("concert", 1));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(heard.json()["status"], "ENTERABLE");
    assert!(heard.json()["pass"].is_string());
    let (began, again) = (Instant::now(), world.get(&uri).await);
    assert_eq!(again.json()["status"], "ENTERABLE");
    assert!(began.elapsed() < Duration::from_secs(1), "only who waits is kept waiting");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_news_the_answer_comes_when_the_time_is_up() {
    let (world, _, second) = listener().await;
    let began = Instant::now();
    let heard = world.get(&held("concert", &second, 20_000)).await;
    assert_eq!(heard.json()["position"], 2);
    let took = began.elapsed();
    assert!((20_000..21_000).contains(&took.as_millis()), "{took:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn people_who_come_behind_are_no_news() {
    let (world, _, second) = listener().await;
    let began = Instant::now();
    let uri = held("concert", &second, 5_000);
    let (heard, _) = tokio::join!(world.get(&uri), world.join("concert", "park"));
    assert!(began.elapsed() >= Duration::from_secs(5));
    assert_eq!(heard.json()["waitingCount"], 3, "but the answer knows of them");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn listening_asks_the_store_nothing_of_its_own() {
    let (world, _, second) = listener().await;
    let world = Arc::new(world);
    let (before, began) = (world.store.calls("snapshot"), Instant::now());
    let uri = held("concert", &second, 10_000);
    futures_util::future::join_all((0..500).map(|_| world.get(&uri))).await;
    let looks = world.store.calls("snapshot") - before;
    assert!(looks as u128 <= began.elapsed().as_millis() / 190 + 2, "{looks} looks");
    assert_eq!(world.store.calls("resolve"), 0);
    Arc::into_inner(world).unwrap().end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_item_ends_the_wait() {
    let (world, _, second) = listener().await;
    let (uri, began) = (held("concert", &second, 30_000), Instant::now());
    let item = id("concert");
    let (heard, gone) = tokio::join!(world.get(&uri), world.store.remove_item(&item));
    gone.unwrap();
    heard.is_problem(404, "ITEM_NOT_FOUND");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_wait_with_an_answer() {
    let (world, _, second) = listener().await;
    let (uri, began) = (held("concert", &second, 30_000), Instant::now());
    let (heard, ()) = tokio::join!(world.get(&uri), async { world.shutdown.now() });
    assert_eq!(heard.json()["position"], 2);
    assert!(began.elapsed() < Duration::from_secs(1));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_listens_is_seen_all_the_while() {
    let (world, _, second) = listener().await;
    world.get(&held("concert", &second, 29_000)).await;
    let number = world.number("concert", &second);
    let marks = world.store.marks(&id("concert"), number);
    assert!(marks >= 5, "{marks} marks in 29 s are too few for a grace period of 10 s");
    world.end().await;
}
