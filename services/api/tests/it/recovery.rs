//! The store lost data: people keep asking, and stand where they stood.

use std::time::Duration;

use axum::http::Method;
use daegi_domain::RECOVERY_HOLD_MS;
use daegi_store::Store;
use daegi_testkit::eventually;
use serde_json::{Value, json};

use crate::harness::{SOON, World, id, line, request};

async fn people(names: &[&str]) -> (World, Vec<String>) {
    let world = World::with_item("concert").await;
    let mut tokens = Vec::new();
    for name in names {
        tokens.push(world.token("concert", name).await);
    }
    (world, tokens)
}

/// Loses everything; a second later the product service's word is read again.
async fn lose_everything(world: &World) {
    world.store.lose(None);
    world.clock.advance(Duration::from_secs(1));
    world.put_item("concert", 1000, true).await;
}

async fn until_position(world: &World, token: &str, position: u64) -> Value {
    eventually(SOON, "the position is known", async || {
        let answer = world.poll("concert", token).await;
        let ticket = (answer.status == 200).then(|| answer.json())?;
        (ticket["position"] == position).then_some(ticket)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn whoever_keeps_polling_is_back_at_the_old_place() {
    let (world, tokens) = people(&["kim", "lee", "park"]).await;
    lose_everything(&world).await;
    let newcomer = world.token("concert", "new").await;
    for (token, position) in [(&tokens[2], 1), (&tokens[0], 1), (&tokens[1], 2), (&tokens[2], 3)] {
        let ticket = until_position(&world, token, position).await;
        assert_eq!(ticket["status"], "WAITING");
        assert_eq!(ticket["token"], token.as_str());
    }
    let ticket = until_position(&world, &newcomer, 4).await;
    assert_eq!((&ticket["lineState"], &ticket["waitingCount"]), (&json!("RECOVERING"), &json!(4)));
    assert!(ticket["pollAfterMs"].as_u64().unwrap() <= 5_000, "{ticket}");

    // Once this pod knows, polls cost the store nothing again.
    let asked = world.store.calls("resolve");
    for (at, token) in tokens.iter().enumerate() {
        assert_eq!(world.poll("concert", token).await.json()["position"], at + 1);
    }
    assert_eq!(world.store.calls("resolve"), asked);

    world.clock.advance(Duration::from_millis(RECOVERY_HOLD_MS));
    eventually(SOON, "the line is open", async || {
        world.poll("concert", &newcomer).await.json()["lineState"] == "OPEN"
    })
    .await;
    world.admit("concert", 1).await;
    world.until_status("concert", &tokens[0], "ENTERABLE").await;
    until_position(&world, &tokens[1], 1).await;
    world.leave("concert", &tokens[1]).await;
    until_position(&world, &newcomer, 2).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_straggler_who_comes_back_after_others_were_let_in_confuses_nobody() {
    let (world, tokens) = people(&["kim", "lee", "park"]).await;
    lose_everything(&world).await;
    until_position(&world, &tokens[1], 1).await;
    until_position(&world, &tokens[2], 2).await;
    world.clock.advance(Duration::from_millis(RECOVERY_HOLD_MS));
    // Between two looks of the pod one is let in and one who stood before them comes back.
    world.admit("concert", 1).await;
    let number = world.number("concert", &tokens[0]);
    let kim = daegi_domain::UserId::parse("kim").unwrap();
    world.store.resolve(&id("concert"), &[(kim, number)], world.clock.now_ms()).await.unwrap();
    world.until_status("concert", &tokens[1], "ENTERABLE").await;
    until_position(&world, &tokens[0], 1).await;
    until_position(&world, &tokens[2], 2).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn while_the_item_is_not_back_people_are_told_to_keep_asking() {
    let (world, tokens) = people(&["kim"]).await;
    world.store.lose(None);
    eventually(SOON, "the loss is felt", async || {
        world.poll("concert", &tokens[0]).await.status == 503
    })
    .await;
    let answer = world.poll("concert", &tokens[0]).await;
    answer.is_problem(503, "UNAVAILABLE");
    assert!(!answer.header("retry-after").is_empty());
    world.join("concert", "lee").await.is_problem(404, "ITEM_NOT_FOUND");
    world.get(&line("concert")).await.is_problem(404, "ITEM_NOT_FOUND");
    world.clock.advance(Duration::from_secs(1));
    world.put_item("concert", 5, true).await;
    until_position(&world, &tokens[0], 1).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_outlives_the_loss_and_puts_its_listener_back() {
    let (world, tokens) = people(&["kim", "lee"]).await;
    let mut stream = world.listen("concert", &tokens[1], None).await;
    assert_eq!(stream.ticket().await["position"], 2);
    let losing = async {
        world.store.lose(None);
        tokio::time::sleep(Duration::from_secs(20)).await;
        world.clock.advance(Duration::from_secs(20));
        world.put_item("concert", 5, true).await;
    };
    let (told, ()) = tokio::join!(stream.ticket(), losing);
    assert_eq!((&told["position"], &told["lineState"]), (&json!(1), &json!("RECOVERING")));
    until_position(&world, &tokens[0], 1).await;
    assert_eq!(stream.ticket().await["position"], 2);
    drop(stream);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn joining_again_with_the_token_finds_the_old_place() {
    let (world, tokens) = people(&["kim", "lee"]).await;
    lose_everything(&world).await;
    let join = |user: &'static str, token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("user-id", user), ("authorization", bearer.as_str())];
        request(Method::POST, &line("concert"), &headers, "")
    };
    let joined = world.call(join("lee", &tokens[1])).await;
    assert_eq!((joined.status.as_u16(), &joined.json()["token"]), (200, &json!(tokens[1])));
    // Somebody else's token, or none at all, is of no use.
    let stranger = world.call(join("kim", &tokens[1])).await;
    assert_eq!(stranger.status, 201);
    assert_ne!(stranger.json()["token"], json!(tokens[0]));
    assert_eq!(world.call(join("new", "no-token")).await.status, 201);
    // But kim's own still beats the new place.
    until_position(&world, &tokens[0], 1).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_fail_over_that_lost_the_newest_keeps_them_behind_the_others() {
    let (world, mut tokens) = people(&["kim", "lee"]).await;
    until_position(&world, &tokens[1], 2).await;
    let replica = world.store.replica();
    tokens.push(world.token("concert", "park").await);
    tokens.push(world.token("concert", "choi").await);
    world.store.lose(Some(replica));
    let newcomer = world.token("concert", "new").await;
    until_position(&world, &tokens[3], 3).await;
    until_position(&world, &tokens[2], 3).await;
    for (at, token) in tokens.iter().chain([&newcomer]).enumerate() {
        until_position(&world, token, at as u64 + 1).await;
    }
    world.leave("concert", &tokens[1]).await;
    until_position(&world, &newcomer, 4).await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_was_let_in_is_let_in_again_when_their_pass_is_shown() {
    let (world, tokens) = people(&["kim", "lee"]).await;
    world.admit("concert", 1).await;
    let turn = world.until_status("concert", &tokens[0], "ENTERABLE").await;
    lose_everything(&world).await;
    let body = json!({ "pass": turn["pass"] }).to_string();
    let verdict = world.post("/internal/v1/item/concert/entry/verify", &body).await.json();
    assert_eq!((&verdict["valid"], &verdict["userId"]), (&json!(true), &json!("kim")));
    assert_eq!(verdict["expiresAt"], turn["passExpiresAt"]);
    let again = world.poll("concert", &tokens[0]).await.json();
    assert_eq!(again["status"], "ENTERABLE");
    assert_eq!(again["passExpiresAt"], turn["passExpiresAt"]);
    until_position(&world, &tokens[1], 1).await;
    world.end().await;
}
