use std::time::Duration;

use daegi_testkit::eventually;
use tokio::time::{Instant, sleep};

use crate::harness::{Answer, SOON, World, id, line, ticket};
use crate::probe::Mood;

#[track_caller]
fn asks_to_come_back(answer: &Answer, began: Instant) {
    answer.is_problem(503, "UNAVAILABLE");
    let after: u32 = answer.header("retry-after").parse().unwrap();
    assert!((1..=3).contains(&after), "{after}");
    assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
}

async fn nobody_hangs_and_everybody_recovers(mood: Mood) {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    world.store.set_mood(mood);
    // What is known is good for a second, and no longer.
    sleep(Duration::from_millis(2500)).await;
    let uri = ticket("concert", &token);
    for _ in 0..3 {
        let began = Instant::now();
        asks_to_come_back(&world.poll("concert", &token).await, began);
        let began = Instant::now();
        asks_to_come_back(&world.join("concert", "lee").await, began);
        let began = Instant::now();
        asks_to_come_back(&world.get(&line("concert")).await, began);
        let began = Instant::now();
        asks_to_come_back(&world.get(&line("unknown")).await, began);
        let began = Instant::now();
        asks_to_come_back(&world.leave("concert", &token).await, began);
        let began = Instant::now();
        asks_to_come_back(&world.get(&format!("{uri}?waitMs=30000")).await, began);
        let verify = "/internal/v1/item/concert/entry/verify";
        let began = Instant::now();
        let body = serde_json::json!({ "token": token }).to_string();
        asks_to_come_back(&world.post(verify, &body).await, began);
    }
    assert!(world.health.check().is_ok(), "readiness does not flap with the store");

    world.store.set_mood(Mood::Up);
    eventually(SOON, "polls are answered again", async || {
        world.poll("concert", &token).await.json()["position"] == 1
    })
    .await;
    assert_eq!(world.join("concert", "lee").await.json()["position"], 2);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_is_told_within_a_second_and_forgotten_when_it_is_back() {
    nobody_hangs_and_everybody_recovers(Mood::Refusing).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_told_within_a_second_and_forgotten_when_it_is_back() {
    nobody_hangs_and_everybody_recovers(Mood::Hanging).await;
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_is_not_noticed_by_people_who_wait() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    world.poll("concert", &token).await;
    world.store.set_mood(Mood::Refusing);
    assert_eq!(world.poll("concert", &token).await.status, 200);
    world.store.set_mood(Mood::Up);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_in_trouble_is_not_asked_once_per_person() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    world.store.set_mood(Mood::Refusing);
    sleep(Duration::from_millis(2500)).await;
    let (before, began) = (world.store.calls("settings"), Instant::now());
    for _ in 0..20 {
        futures_util::future::join_all((0..50).map(|_| world.poll("concert", &token))).await;
    }
    let asked = world.store.calls("settings") - before;
    let rounds = usize::try_from(began.elapsed().as_millis() / 200).unwrap() + 2;
    assert!(asked <= rounds, "{asked} calls in {:?} for 1000 polls", began.elapsed());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn marks_survive_an_outage() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    let number = world.number("concert", &token);
    world.store.set_mood(Mood::Refusing);
    sleep(Duration::from_secs(3)).await;
    assert!(world.store.marks(&id("concert"), number) == 0);
    world.store.set_mood(Mood::Up);
    eventually(SOON, "the mark arrives", async || world.store.marks(&id("concert"), number) > 0)
        .await;
    world.end().await;
}
