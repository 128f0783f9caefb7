//! After a data loss, polling tickets are reclaimed at their positions.

use std::time::Duration;

use axum::http::Method;
use daegi_domain::{RECOVERY_HOLD_MS, Ticket};
use daegi_store::TicketStore;
use daegi_testkit::eventually;
use serde_json::{Value, json};

use crate::harness::{Harness, TEST_TIMEOUT, id, line, request};

async fn joined_users(names: &[&str]) -> (Harness, Vec<String>) {
    let harness = Harness::with_item("concert").await;
    let mut tokens = Vec::new();
    for name in names {
        tokens.push(harness.token("concert", name).await);
    }
    (harness, tokens)
}

/// Loses all data; a second later the item is restored from its topic.
async fn lose_everything(harness: &Harness) {
    harness.store.restore(None);
    harness.clock.advance(Duration::from_secs(1));
    harness.put_item("concert", 1000, true).await;
}

async fn until_position(harness: &Harness, token: &str, position: u64) -> Value {
    eventually(TEST_TIMEOUT, "the position is known", async || {
        let answer = harness.poll("concert", token).await;
        let ticket = (answer.status == 200).then(|| answer.json())?;
        (ticket["position"] == position).then_some(ticket)
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn polling_tickets_are_reclaimed_at_their_old_positions() {
    let (harness, tokens) = joined_users(&["kim", "lee", "park"]).await;
    lose_everything(&harness).await;
    let newcomer = harness.token("concert", "new").await;
    for (token, position) in [(&tokens[2], 1), (&tokens[0], 1), (&tokens[1], 2), (&tokens[2], 3)] {
        let ticket = until_position(&harness, token, position).await;
        assert_eq!(ticket["status"], "WAITING");
        assert_eq!(ticket["token"], token.as_str());
    }
    let ticket = until_position(&harness, &newcomer, 4).await;
    assert_eq!((&ticket["lineState"], &ticket["waitingCount"]), (&json!("RECOVERING"), &json!(4)));
    assert!(ticket["pollAfterMs"].as_u64().unwrap() <= 5_000, "{ticket}");

    // Once this pod knows, polls cost the store nothing again.
    let resolves = harness.store.calls("resolve");
    for (at, token) in tokens.iter().enumerate() {
        assert_eq!(harness.poll("concert", token).await.json()["position"], at + 1);
    }
    assert_eq!(harness.store.calls("resolve"), resolves);

    harness.clock.advance(Duration::from_millis(RECOVERY_HOLD_MS));
    eventually(TEST_TIMEOUT, "the line is open", async || {
        harness.poll("concert", &newcomer).await.json()["lineState"] == "OPEN"
    })
    .await;
    harness.admit("concert", 1).await;
    harness.until_status("concert", &tokens[0], "ENTERABLE").await;
    until_position(&harness, &tokens[1], 1).await;
    harness.leave("concert", &tokens[1]).await;
    until_position(&harness, &newcomer, 2).await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_ticket_that_is_reclaimed_after_admissions_resumed_gets_its_position() {
    let (harness, tokens) = joined_users(&["kim", "lee", "park"]).await;
    lose_everything(&harness).await;
    until_position(&harness, &tokens[1], 1).await;
    until_position(&harness, &tokens[2], 2).await;
    harness.clock.advance(Duration::from_millis(RECOVERY_HOLD_MS));
    // Between two refreshes of the pod, one ticket is admitted and an earlier one is reclaimed.
    harness.admit("concert", 1).await;
    let number = harness.number("concert", &tokens[0]);
    let kim = daegi_domain::UserId::parse("kim").unwrap();
    let ticket = Ticket::new(id("concert"), kim, number);
    harness.store.resolve(&[ticket], harness.clock.now_ms()).await.unwrap();
    harness.until_status("concert", &tokens[1], "ENTERABLE").await;
    until_position(&harness, &tokens[0], 1).await;
    until_position(&harness, &tokens[2], 2).await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn while_the_item_is_missing_polls_get_503() {
    let (harness, tokens) = joined_users(&["kim"]).await;
    harness.store.restore(None);
    eventually(TEST_TIMEOUT, "the loss is felt", async || {
        harness.poll("concert", &tokens[0]).await.status == 503
    })
    .await;
    let answer = harness.poll("concert", &tokens[0]).await;
    answer.assert_problem(503, "UNAVAILABLE");
    assert!(!answer.header("retry-after").is_empty());
    harness.join("concert", "lee").await.assert_problem(404, "ITEM_NOT_FOUND");
    harness.get(&line("concert")).await.assert_problem(404, "ITEM_NOT_FOUND");
    harness.clock.advance(Duration::from_secs(1));
    harness.put_item("concert", 5, true).await;
    until_position(&harness, &tokens[0], 1).await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_survives_the_loss_and_reclaims_its_ticket() {
    let (harness, tokens) = joined_users(&["kim", "lee"]).await;
    let mut stream = harness.open_stream("concert", &tokens[1], None).await;
    assert_eq!(stream.ticket().await["position"], 2);
    let losing = async {
        harness.store.restore(None);
        tokio::time::sleep(Duration::from_secs(20)).await;
        harness.clock.advance(Duration::from_secs(20));
        harness.put_item("concert", 5, true).await;
    };
    let (sent, ()) = tokio::join!(stream.ticket(), losing);
    assert_eq!((&sent["position"], &sent["lineState"]), (&json!(1), &json!("RECOVERING")));
    until_position(&harness, &tokens[0], 1).await;
    assert_eq!(stream.ticket().await["position"], 2);
    drop(stream);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn joining_with_the_token_reclaims_the_old_position() {
    let (harness, tokens) = joined_users(&["kim", "lee"]).await;
    lose_everything(&harness).await;
    let join = |user: &'static str, token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("user-id", user), ("authorization", bearer.as_str())];
        request(Method::POST, &line("concert"), &headers, "")
    };
    let joined = harness.call(join("lee", &tokens[1])).await;
    assert_eq!((joined.status.as_u16(), &joined.json()["token"]), (200, &json!(tokens[1])));
    // The token of another user, or an invalid one, has no effect.
    let stranger = harness.call(join("kim", &tokens[1])).await;
    assert_eq!(stranger.status, 201);
    assert_ne!(stranger.json()["token"], json!(tokens[0]));
    assert_eq!(harness.call(join("new", "no-token")).await.status, 201);
    // But kim's own still beats the new place.
    until_position(&harness, &tokens[0], 1).await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_fail_over_lost_tickets_keep_their_order() {
    let (harness, mut tokens) = joined_users(&["kim", "lee"]).await;
    until_position(&harness, &tokens[1], 2).await;
    let replica = harness.store.image();
    tokens.push(harness.token("concert", "park").await);
    tokens.push(harness.token("concert", "choi").await);
    harness.store.restore(Some(replica));
    let newcomer = harness.token("concert", "new").await;
    let ticket = until_position(&harness, &newcomer, 3).await;
    assert_eq!(ticket["lineState"], "OPEN", "known tickets may be admitted: {ticket}");
    until_position(&harness, &tokens[3], 3).await;
    until_position(&harness, &tokens[2], 3).await;
    for (at, token) in tokens.iter().chain([&newcomer]).enumerate() {
        until_position(&harness, token, at as u64 + 1).await;
    }
    harness.leave("concert", &tokens[1]).await;
    until_position(&harness, &newcomer, 4).await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn new_tickets_see_recovering_after_a_fail_over() {
    let (harness, _) = joined_users(&[]).await;
    let replica = harness.store.image();
    let lost = harness.token("concert", "kim").await;
    harness.store.restore(Some(replica));
    let newcomer = harness.token("concert", "new").await;
    let state = async |expected: &str| {
        eventually(TEST_TIMEOUT, expected, async || {
            harness.poll("concert", &newcomer).await.json()["lineState"] == expected
        })
        .await;
    };
    state("RECOVERING").await;
    harness.clock.advance(Duration::from_millis(RECOVERY_HOLD_MS));
    state("OPEN").await;
    until_position(&harness, &lost, 1).await;
    until_position(&harness, &newcomer, 2).await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_presented_pass_restores_its_entry() {
    let (harness, tokens) = joined_users(&["kim", "lee"]).await;
    harness.admit("concert", 1).await;
    let turn = harness.until_status("concert", &tokens[0], "ENTERABLE").await;
    lose_everything(&harness).await;
    let body = json!({ "pass": turn["pass"] }).to_string();
    let verdict = harness.post("/internal/v1/item/concert/entry/verify", &body).await.json();
    assert_eq!((&verdict["valid"], &verdict["userId"]), (&json!(true), &json!("kim")));
    assert_eq!(verdict["expiresAt"], turn["passExpiresAt"]);
    let again = harness.poll("concert", &tokens[0]).await.json();
    assert_eq!(again["status"], "ENTERABLE");
    assert_eq!(again["passExpiresAt"], turn["passExpiresAt"]);
    until_position(&harness, &tokens[1], 1).await;
    harness.end().await;
}
