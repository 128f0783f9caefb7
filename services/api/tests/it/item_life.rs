use std::time::Duration;

use daegi_store::ItemStore;
use daegi_testkit::eventually;
use tokio::time::sleep;

use crate::harness::{Harness, TEST_TIMEOUT, id, line, ticket};

#[tokio::test(start_paused = true)]
async fn a_sold_out_item_refuses_joins_until_it_is_restocked() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    harness.put_item("concert", 0, true).await;
    harness.join("concert", "lee").await.assert_problem(409, "SOLD_OUT");
    eventually(TEST_TIMEOUT, "waiting tickets see it", async || {
        harness.poll("concert", &token).await.json()["lineState"] == "SOLD_OUT"
    })
    .await;
    let kept = harness.join("concert", "kim").await;
    assert_eq!((kept.status.as_u16(), &kept.json()["position"]), (200, &1.into()));

    harness.put_item("concert", 5, true).await;
    let lee = harness.join("concert", "lee").await;
    assert_eq!((lee.status.as_u16(), &lee.json()["position"]), (201, &2.into()));
    eventually(TEST_TIMEOUT, "the line is open again", async || {
        harness.poll("concert", &token).await.json()["lineState"] == "OPEN"
    })
    .await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_disabled_item_refuses_joins_and_keeps_its_line() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    harness.put_item("concert", 5, false).await;
    harness.join("concert", "lee").await.assert_problem(409, "QUEUE_DISABLED");
    eventually(TEST_TIMEOUT, "waiting tickets see it", async || {
        harness.get(&line("concert")).await.json()["lineState"] == "DISABLED"
    })
    .await;
    assert_eq!(harness.poll("concert", &token).await.json()["position"], 1);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_reset_ends_all_tickets_and_the_new_line_starts_at_one() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    harness.store.reset(&id("concert"), harness.clock.now_ms()).await.unwrap();
    eventually(TEST_TIMEOUT, "the line is restarted", async || {
        harness.poll("concert", &token).await.status == 410
    })
    .await;
    harness.poll("concert", &token).await.assert_problem(410, "LINE_RESTARTED");
    let again = harness.join("concert", "kim").await;
    assert_eq!(again.status, 201);
    assert_eq!(again.json()["position"], 1);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_item_is_not_found() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    harness.store.remove_item(&id("concert"), harness.clock.now_ms()).await.unwrap();
    harness.join("concert", "lee").await.assert_problem(404, "ITEM_NOT_FOUND");
    eventually(TEST_TIMEOUT, "the line is gone", async || {
        harness.poll("concert", &token).await.status == 404
    })
    .await;
    harness.get(&line("concert")).await.assert_problem(404, "ITEM_NOT_FOUND");
    harness.put_item("concert", 5, true).await;
    eventually(TEST_TIMEOUT, "and it can come back", async || {
        harness.join("concert", "lee").await.status == 201
    })
    .await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_of_a_removed_item_lasts_until_it_ends() {
    let harness = Harness::with_item("concert").await;
    let (kim, lee) = (harness.token("concert", "kim").await, harness.token("concert", "lee").await);
    harness.admit("concert", 1).await;
    let turn = harness.until_status("concert", &kim, "ENTERABLE").await;
    let mut stream = harness.open_stream("concert", &kim, None).await;
    assert_eq!(stream.ticket().await["status"], "ENTERABLE");
    harness.store.remove_item(&id("concert"), harness.clock.now_ms()).await.unwrap();
    eventually(TEST_TIMEOUT, "waiting tickets have ended", async || {
        harness.poll("concert", &lee).await.status == 404
    })
    .await;
    let before = harness.store.calls("resolve");
    for _ in 0..100 {
        let ticket = harness.poll("concert", &kim).await.json();
        assert_eq!((&ticket["status"], &ticket["pass"]), (&"ENTERABLE".into(), &turn["pass"]));
        assert_eq!(
            (&ticket["lineState"], &ticket["waitingCount"]),
            (&"DISABLED".into(), &0.into())
        );
    }
    assert!(harness.store.calls("resolve") - before <= 2, "polls share a cached state");
    let listen = harness.get(&format!("{}/events", ticket("concert", &kim))).await;
    listen.assert_problem(503, "UNAVAILABLE");
    harness.clock.advance(Duration::from_secs(601));
    assert_eq!(stream.ticket().await["status"], "EXPIRED", "the stream names the end");
    assert_eq!(stream.next_event().await, None);
    assert_eq!(harness.poll("concert", &kim).await.json()["status"], "EXPIRED");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_line_is_evicted_and_loaded_again() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    let tasks = harness.shutdown.tracker().len();
    sleep(Duration::from_secs(30)).await;
    let looks = harness.store.calls("snapshot");
    assert_eq!(harness.shutdown.tracker().len(), tasks, "it rests, and is kept for a minute");
    sleep(Duration::from_secs(120)).await;
    assert_eq!(harness.store.calls("snapshot"), looks, "an idle line is not loaded");
    assert!(harness.shutdown.tracker().len() < tasks, "its task has ended");
    assert_eq!(harness.poll("concert", &token).await.json()["position"], 1);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_returning_user_is_first() {
    let harness = Harness::with_item("concert").await;
    let missing = harness.token("concert", "kim").await;
    let mut present = Vec::new();
    for user in ["lee", "park"] {
        present.push(harness.token("concert", user).await);
    }
    // So that no mark of now is on its way when it is two minutes later.
    sleep(Duration::from_secs(5)).await;
    harness.clock.advance(Duration::from_secs(120));
    for token in &present {
        let (number, item) = (harness.number("concert", token), id("concert"));
        harness.poll("concert", token).await;
        let before = harness.store.marks(&item, number);
        eventually(TEST_TIMEOUT, "seen", async || harness.store.marks(&item, number) > before)
            .await;
    }
    harness.admit("concert", 1).await;
    harness.until_status("concert", &present[0], "ENTERABLE").await;
    let back = harness.poll("concert", &missing).await.json();
    assert_eq!((&back["status"], &back["position"]), (&"WAITING".into(), &1.into()));
    eventually(TEST_TIMEOUT, "the others stand behind", async || {
        harness.poll("concert", &present[1]).await.json()["position"] == 2
    })
    .await;
    harness.end().await;
}
