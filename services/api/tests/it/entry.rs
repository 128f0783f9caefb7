use std::time::Duration;

use axum::http::Method;
use daegi_domain::rfc3339;
use serde_json::{Value, json};

use crate::harness::{NOW, World, request};

const VERIFY: &str = "/internal/v1/item/concert/entry/verify";
const COMPLETE: &str = "/internal/v1/item/concert/entry/complete";

async fn verify(world: &World, kind: &str, proof: &str) -> Value {
    let answer = world.post(VERIFY, &json!({ kind: proof }).to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

async fn complete(world: &World, token: &str) -> Value {
    world.post(COMPLETE, &json!({ "token": token }).to_string()).await.json()
}

/// A person who was let in: token and pass.
async fn inside() -> (World, String, String) {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    world.admit("concert", 1).await;
    let ticket = world.until_status("concert", &token, "ENTERABLE").await;
    let pass = ticket["pass"].as_str().unwrap().to_owned();
    assert_eq!(ticket["position"], 0);
    assert_eq!(ticket["passExpiresAt"], rfc3339(NOW + 600_000));
    (world, token, pass)
}

#[tokio::test(start_paused = true)]
async fn whoever_was_let_in_has_an_entry_that_verifies() {
    let (world, token, pass) = inside().await;
    let good = json!({ "valid": true, "userId": "kim", "expiresAt": rfc3339(NOW + 600_000) });
    assert_eq!(verify(&world, "token", &token).await, good);
    assert_eq!(verify(&world, "pass", &pass).await, good);
    let again = world.poll("concert", &token).await.json();
    assert_eq!(again["pass"], pass.as_str(), "the same entry has the same pass");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_completed_entry_is_over_and_its_pass_with_it() {
    let (world, token, pass) = inside().await;
    assert_eq!(complete(&world, &token).await, json!({ "released": true }));
    assert_eq!(complete(&world, &token).await, json!({ "released": false }));
    let over = json!({ "valid": false, "reason": "COMPLETED" });
    assert_eq!(verify(&world, "token", &token).await, over);
    assert_eq!(verify(&world, "pass", &pass).await, over);
    assert_eq!(world.poll("concert", &token).await.json()["status"], "COMPLETED");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pass_completes_its_entry_like_the_token() {
    let (world, token, pass) = inside().await;
    let by_pass = async |item: &str, pass: &str| {
        let uri = format!("/internal/v1/item/{item}/entry/complete");
        world.post(&uri, &json!({ "pass": pass }).to_string()).await
    };
    by_pass("other", &pass).await.is_problem(403, "TOKEN_MISMATCH");
    by_pass("concert", "a.b.c").await.is_problem(401, "INVALID_TOKEN");
    assert_eq!(by_pass("concert", &pass).await.json(), json!({ "released": true }));
    assert_eq!(by_pass("concert", &pass).await.json(), json!({ "released": false }));
    assert_eq!(world.poll("concert", &token).await.json()["status"], "COMPLETED");
    world.clock.advance(Duration::from_secs(601));
    assert_eq!(by_pass("concert", &pass).await.json(), json!({ "released": false }), "expired");
    for body in [json!({}), json!({ "pass": pass, "token": token })] {
        world.post(COMPLETE, &body.to_string()).await.is_problem(400, "INVALID_REQUEST");
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_given_back_revokes_the_pass() {
    let (world, token, pass) = inside().await;
    assert_eq!(world.leave("concert", &token).await.status, 204);
    let over = json!({ "valid": false, "reason": "LEFT" });
    assert_eq!(verify(&world, "pass", &pass).await, over);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_ends_with_its_time_even_before_the_leader_says_so() {
    let (world, token, pass) = inside().await;
    world.clock.advance(Duration::from_secs(600));
    let over = json!({ "valid": false, "reason": "EXPIRED" });
    assert_eq!(verify(&world, "token", &token).await, over);
    assert_eq!(verify(&world, "pass", &pass).await, over);
    let ticket = world.poll("concert", &token).await.json();
    assert_eq!(ticket["status"], "EXPIRED");
    assert!(ticket["pass"].is_null());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_still_waits_is_not_inside() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    let not_yet = json!({ "valid": false, "reason": "WAITING" });
    assert_eq!(verify(&world, "token", &token).await, not_yet);
    assert_eq!(complete(&world, &token).await, json!({ "released": false }));
    assert_eq!(world.poll("concert", &token).await.json()["position"], 1, "and keeps the place");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn proofs_that_are_not_genuine_are_told_apart() {
    let (world, token, pass) = inside().await;
    world.put_item("match", 1, true).await;
    let refused = |reason: &str| json!({ "valid": false, "reason": reason });
    for (kind, proof) in [("token", "x"), ("pass", "x"), ("token", &pass), ("pass", &token)] {
        assert_eq!(verify(&world, kind, proof).await, refused("INVALID_TOKEN"), "{kind} {proof}");
    }
    let other = "/internal/v1/item/match/entry/verify";
    for body in [json!({ "token": token }), json!({ "pass": pass })] {
        let answer = world.post(other, &body.to_string()).await;
        assert_eq!(answer.json(), refused("TOKEN_MISMATCH"));
    }
    let forged = json!({ "token": "kim-concert-x" }).to_string();
    world.post(COMPLETE, &forged).await.is_problem(401, "INVALID_TOKEN");
    let other = "/internal/v1/item/match/entry/complete";
    let foreign = json!({ "token": token }).to_string();
    world.post(other, &foreign).await.is_problem(403, "TOKEN_MISMATCH");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn exactly_one_proof_is_needed() {
    let world = World::with_item("concert").await;
    let both = r#"{"token":"a","pass":"b"}"#;
    for body in ["", "{}", both, r#"{"token":7}"#, r#"{"token":"a","x":1}"#, "[]", "{"] {
        world.post(VERIFY, body).await.is_problem(400, "INVALID_REQUEST");
    }
    for body in ["", "{}", r#"{"token":null}"#, r#"{"token":"a","x":1}"#] {
        world.post(COMPLETE, body).await.is_problem(400, "INVALID_REQUEST");
    }
    let text = request(Method::POST, VERIFY, &[("content-type", "text/plain")], "hello");
    world.call(text).await.is_problem(415, "UNSUPPORTED_MEDIA_TYPE");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_about_entries_of_an_item_that_was_lost() {
    let world = World::cold();
    world.is_ready().await;
    let ticket = daegi_domain::Ticket {
        item: crate::harness::id("concert"),
        user: daegi_domain::UserId::parse("kim").unwrap(),
        number: daegi_domain::Number::base_at(crate::harness::NOW),
    };
    let token = world.keys.token(&ticket);
    let asked = json!({ "token": token }).to_string();
    world.post(VERIFY, &asked).await.is_problem(503, "UNAVAILABLE");
    world.end().await;
}
