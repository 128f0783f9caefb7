use std::collections::BTreeSet;

use futures_util::future::join_all;

use crate::harness::{World, line};

#[tokio::test(start_paused = true)]
async fn two_thousand_people_at_once_stand_densely_and_cost_few_calls() {
    let world = World::with_item("concert").await;
    let before = world.store.calls("join");
    let users: Vec<String> = (0..2000).map(|n| format!("user-{n}")).collect();
    let joined = join_all(users.iter().map(|user| world.join("concert", user))).await;
    assert!(joined.iter().all(|answer| answer.status == 201));
    let positions: BTreeSet<u64> =
        joined.iter().map(|answer| answer.json()["position"].as_u64().unwrap()).collect();
    assert!(positions.into_iter().eq(1..=2000));
    let calls = world.store.calls("join") - before;
    assert!(calls <= 2000 / 50, "{calls} calls for 2000 people");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn one_person_who_joins_a_hundred_times_at_once_has_one_place() {
    let world = World::with_item("concert").await;
    let joined = join_all((0..100).map(|_| world.join("concert", "kim"))).await;
    let new = joined.iter().filter(|answer| answer.status == 201).count();
    let tokens: BTreeSet<String> =
        joined.iter().map(|answer| answer.json()["token"].to_string()).collect();
    assert_eq!((new, tokens.len()), (1, 1));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_polls_ask_the_store_nothing() {
    let world = World::with_item("concert").await;
    let mut tokens = Vec::new();
    for n in 0..10 {
        tokens.push(world.token("concert", &format!("user-{n}")).await);
    }
    world.poll("concert", &tokens[9]).await;
    let calls = || ["snapshot", "resolve", "settings", "join"].map(|call| world.store.calls(call));
    let before = calls();
    for n in 0..1000 {
        let position = world.poll("concert", &tokens[n % 10]).await.json()["position"].clone();
        assert_eq!(position, n % 10 + 1);
    }
    assert_eq!(calls(), before, "not one call");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn many_first_requests_for_one_item_cause_one_call() {
    let world = World::with_item("concert").await;
    let before = world.store.calls("snapshot");
    let looked = join_all((0..500).map(|_| async { world.get(&line("concert")).await })).await;
    assert!(looked.iter().all(|answer| answer.status == 200));
    let nowhere = join_all((0..500).map(|_| async { world.get(&line("nowhere")).await })).await;
    nowhere.iter().for_each(|answer| answer.is_problem(404, "ITEM_NOT_FOUND"));
    assert_eq!(world.store.calls("snapshot") - before, 2);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn people_whose_turn_came_ask_together() {
    let world = World::with_item("concert").await;
    let mut tokens = Vec::new();
    for n in 0..200 {
        tokens.push(world.token("concert", &format!("user-{n}")).await);
    }
    world.admit("concert", 200).await;
    world.until_status("concert", &tokens[0], "ENTERABLE").await;
    let before = world.store.calls("resolve");
    let polled = join_all(tokens.iter().map(|token| world.poll("concert", token))).await;
    assert!(polled.iter().all(|answer| answer.json()["status"] == "ENTERABLE"));
    let asked = world.store.calls("resolve") - before;
    assert!(asked <= 3, "{asked} calls for 200 people");
    world.end().await;
}
