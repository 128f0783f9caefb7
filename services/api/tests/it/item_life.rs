use std::time::Duration;

use daegi_store::Store;
use daegi_testkit::eventually;
use tokio::time::sleep;

use crate::harness::{SOON, World, id, line, ticket};

#[tokio::test(start_paused = true)]
async fn a_sold_out_item_takes_nobody_new_until_it_is_restocked() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    world.put_item("concert", 0, true).await;
    world.join("concert", "lee").await.is_problem(409, "SOLD_OUT");
    eventually(SOON, "people in the line are told", async || {
        world.poll("concert", &token).await.json()["lineState"] == "SOLD_OUT"
    })
    .await;
    let kept = world.join("concert", "kim").await;
    assert_eq!((kept.status.as_u16(), &kept.json()["position"]), (200, &1.into()));

    world.put_item("concert", 5, true).await;
    let lee = world.join("concert", "lee").await;
    assert_eq!((lee.status.as_u16(), &lee.json()["position"]), (201, &2.into()));
    eventually(SOON, "the line is open again", async || {
        world.poll("concert", &token).await.json()["lineState"] == "OPEN"
    })
    .await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_disabled_item_takes_nobody_new_and_keeps_its_line() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    world.put_item("concert", 5, false).await;
    world.join("concert", "lee").await.is_problem(409, "QUEUE_DISABLED");
    eventually(SOON, "people in the line are told", async || {
        world.get(&line("concert")).await.json()["lineState"] == "DISABLED"
    })
    .await;
    assert_eq!(world.poll("concert", &token).await.json()["position"], 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_reset_sends_everybody_away_and_the_new_line_begins_at_one() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    world.store.reset(&id("concert"), world.clock.now_ms()).await.unwrap();
    eventually(SOON, "the line is restarted", async || {
        world.poll("concert", &token).await.status == 410
    })
    .await;
    world.poll("concert", &token).await.is_problem(410, "LINE_RESTARTED");
    let again = world.join("concert", "kim").await;
    assert_eq!(again.status, 201);
    assert_eq!(again.json()["position"], 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_item_is_not_found() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    world.store.remove_item(&id("concert")).await.unwrap();
    world.join("concert", "lee").await.is_problem(404, "ITEM_NOT_FOUND");
    eventually(SOON, "the line is gone", async || {
        world.poll("concert", &token).await.status == 404
    })
    .await;
    world.get(&line("concert")).await.is_problem(404, "ITEM_NOT_FOUND");
    world.put_item("concert", 5, true).await;
    eventually(SOON, "and it can come back", async || {
        world.join("concert", "lee").await.status == 201
    })
    .await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_of_a_removed_item_lasts_until_it_ends() {
    let world = World::with_item("concert").await;
    let (kim, lee) = (world.token("concert", "kim").await, world.token("concert", "lee").await);
    world.admit("concert", 1).await;
    let turn = world.until_status("concert", &kim, "ENTERABLE").await;
    let mut stream = world.listen("concert", &kim, None).await;
    assert_eq!(stream.ticket().await["status"], "ENTERABLE");
    world.store.remove_item(&id("concert")).await.unwrap();
    eventually(SOON, "waiting tickets have ended", async || {
        world.poll("concert", &lee).await.status == 404
    })
    .await;
    let before = world.store.calls("resolve");
    for _ in 0..100 {
        let ticket = world.poll("concert", &kim).await.json();
        assert_eq!((&ticket["status"], &ticket["pass"]), (&"ENTERABLE".into(), &turn["pass"]));
        assert_eq!(
            (&ticket["lineState"], &ticket["waitingCount"]),
            (&"DISABLED".into(), &0.into())
        );
    }
    assert!(world.store.calls("resolve") - before <= 2, "polls share an answer");
    let listen = world.get(&format!("{}/events", ticket("concert", &kim))).await;
    listen.is_problem(503, "UNAVAILABLE");
    world.clock.advance(Duration::from_secs(601));
    assert_eq!(stream.ticket().await["status"], "EXPIRED", "the stream names the end");
    assert_eq!(stream.said().await, None);
    assert_eq!(world.poll("concert", &kim).await.json()["status"], "EXPIRED");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_nobody_asks_for_is_dropped_and_comes_back_when_asked() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    let tasks = world.shutdown.tracker().len();
    sleep(Duration::from_secs(30)).await;
    let looks = world.store.calls("snapshot");
    assert_eq!(world.shutdown.tracker().len(), tasks, "it rests, and is kept for a minute");
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.store.calls("snapshot"), looks, "nobody looks at a line nobody asks for");
    assert!(world.shutdown.tracker().len() < tasks, "its task has ended");
    assert_eq!(world.poll("concert", &token).await.json()["position"], 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_missed_their_turn_and_comes_back_is_first() {
    let world = World::with_item("concert").await;
    let missing = world.token("concert", "kim").await;
    let mut present = Vec::new();
    for user in ["lee", "park"] {
        present.push(world.token("concert", user).await);
    }
    // So that no mark of now is on its way when it is two minutes later.
    sleep(Duration::from_secs(5)).await;
    world.clock.advance(Duration::from_secs(120));
    for token in &present {
        let (number, item) = (world.number("concert", token), id("concert"));
        world.poll("concert", token).await;
        let before = world.store.marks(&item, number);
        eventually(SOON, "seen", async || world.store.marks(&item, number) > before).await;
    }
    world.admit("concert", 1).await;
    world.until_status("concert", &present[0], "ENTERABLE").await;
    let back = world.poll("concert", &missing).await.json();
    assert_eq!((&back["status"], &back["position"]), (&"WAITING".into(), &1.into()));
    eventually(SOON, "the others stand behind", async || {
        world.poll("concert", &present[1]).await.json()["position"] == 2
    })
    .await;
    world.end().await;
}
