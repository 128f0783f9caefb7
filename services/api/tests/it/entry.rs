use std::time::Duration;

use axum::http::Method;
use daegi_domain::rfc3339;
use serde_json::{Value, json};

use crate::harness::{Harness, NOW, request};

const VERIFY: &str = "/internal/v1/item/concert/entry/verify";
const COMPLETE: &str = "/internal/v1/item/concert/entry/complete";

async fn verify(harness: &Harness, kind: &str, proof: &str) -> Value {
    let answer = harness.post(VERIFY, &json!({ kind: proof }).to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

async fn complete(harness: &Harness, token: &str) -> Value {
    harness.post(COMPLETE, &json!({ "token": token }).to_string()).await.json()
}

/// Admits a user and returns their token and pass.
async fn inside() -> (Harness, String, String) {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    harness.admit("concert", 1).await;
    let ticket = harness.until_status("concert", &token, "ENTERABLE").await;
    let pass = ticket["pass"].as_str().unwrap().to_owned();
    assert_eq!(ticket["position"], 0);
    assert_eq!(ticket["passExpiresAt"], rfc3339(NOW + 600_000));
    (harness, token, pass)
}

#[tokio::test(start_paused = true)]
async fn whoever_was_let_in_has_an_entry_that_verifies() {
    let (harness, token, pass) = inside().await;
    let good = json!({ "valid": true, "userId": "kim", "expiresAt": rfc3339(NOW + 600_000) });
    assert_eq!(verify(&harness, "token", &token).await, good);
    assert_eq!(verify(&harness, "pass", &pass).await, good);
    let again = harness.poll("concert", &token).await.json();
    assert_eq!(again["pass"], pass.as_str(), "the same entry has the same pass");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_completed_entry_is_over_and_its_pass_with_it() {
    let (harness, token, pass) = inside().await;
    assert_eq!(complete(&harness, &token).await, json!({ "released": true }));
    assert_eq!(complete(&harness, &token).await, json!({ "released": false }));
    let over = json!({ "valid": false, "reason": "COMPLETED" });
    assert_eq!(verify(&harness, "token", &token).await, over);
    assert_eq!(verify(&harness, "pass", &pass).await, over);
    assert_eq!(harness.poll("concert", &token).await.json()["status"], "COMPLETED");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pass_completes_its_entry_like_the_token() {
    let (harness, token, pass) = inside().await;
    let by_pass = async |item: &str, pass: &str| {
        let uri = format!("/internal/v1/item/{item}/entry/complete");
        harness.post(&uri, &json!({ "pass": pass }).to_string()).await
    };
    by_pass("other", &pass).await.assert_problem(403, "TOKEN_MISMATCH");
    by_pass("concert", "a.b.c").await.assert_problem(401, "INVALID_TOKEN");
    assert_eq!(by_pass("concert", &pass).await.json(), json!({ "released": true }));
    assert_eq!(by_pass("concert", &pass).await.json(), json!({ "released": false }));
    assert_eq!(harness.poll("concert", &token).await.json()["status"], "COMPLETED");
    harness.clock.advance(Duration::from_secs(601));
    assert_eq!(by_pass("concert", &pass).await.json(), json!({ "released": false }), "expired");
    for body in [json!({}), json!({ "pass": pass, "token": token })] {
        harness.post(COMPLETE, &body.to_string()).await.assert_problem(400, "INVALID_REQUEST");
    }
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_given_back_revokes_the_pass() {
    let (harness, token, pass) = inside().await;
    assert_eq!(harness.leave("concert", &token).await.status, 204);
    let over = json!({ "valid": false, "reason": "LEFT" });
    assert_eq!(verify(&harness, "pass", &pass).await, over);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_entry_ends_with_its_time_even_before_the_leader_says_so() {
    let (harness, token, pass) = inside().await;
    harness.clock.advance(Duration::from_secs(600));
    let over = json!({ "valid": false, "reason": "EXPIRED" });
    assert_eq!(verify(&harness, "token", &token).await, over);
    assert_eq!(verify(&harness, "pass", &pass).await, over);
    let ticket = harness.poll("concert", &token).await.json();
    assert_eq!(ticket["status"], "EXPIRED");
    assert!(ticket["pass"].is_null());
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_still_waits_is_not_inside() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    let not_yet = json!({ "valid": false, "reason": "WAITING" });
    assert_eq!(verify(&harness, "token", &token).await, not_yet);
    assert_eq!(complete(&harness, &token).await, json!({ "released": false }));
    assert_eq!(harness.poll("concert", &token).await.json()["position"], 1, "and keeps the place");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn proofs_that_are_not_genuine_are_told_apart() {
    let (harness, token, pass) = inside().await;
    harness.put_item("match", 1, true).await;
    let refused = |reason: &str| json!({ "valid": false, "reason": reason });
    for (kind, proof) in [("token", "x"), ("pass", "x"), ("token", &pass), ("pass", &token)] {
        assert_eq!(verify(&harness, kind, proof).await, refused("INVALID_TOKEN"), "{kind} {proof}");
    }
    let other = "/internal/v1/item/match/entry/verify";
    for body in [json!({ "token": token }), json!({ "pass": pass })] {
        let answer = harness.post(other, &body.to_string()).await;
        assert_eq!(answer.json(), refused("TOKEN_MISMATCH"));
    }
    let forged = json!({ "token": "kim-concert-x" }).to_string();
    harness.post(COMPLETE, &forged).await.assert_problem(401, "INVALID_TOKEN");
    let other = "/internal/v1/item/match/entry/complete";
    let foreign = json!({ "token": token }).to_string();
    harness.post(other, &foreign).await.assert_problem(403, "TOKEN_MISMATCH");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn exactly_one_proof_is_needed() {
    let harness = Harness::with_item("concert").await;
    let both = r#"{"token":"a","pass":"b"}"#;
    for body in ["", "{}", both, r#"{"token":7}"#, r#"{"token":"a","x":1}"#, "[]", "{"] {
        harness.post(VERIFY, body).await.assert_problem(400, "INVALID_REQUEST");
    }
    for body in ["", "{}", r#"{"token":null}"#, r#"{"token":"a","x":1}"#] {
        harness.post(COMPLETE, body).await.assert_problem(400, "INVALID_REQUEST");
    }
    let text = request(Method::POST, VERIFY, &[("content-type", "text/plain")], "hello");
    harness.call(text).await.assert_problem(415, "UNSUPPORTED_MEDIA_TYPE");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_about_entries_of_an_item_that_was_lost() {
    let harness = Harness::cold();
    harness.wait_until_ready().await;
    let ticket = daegi_domain::Ticket::new(
        crate::harness::id("concert"),
        daegi_domain::UserId::parse("kim").unwrap(),
        daegi_domain::Number::base_at(crate::harness::NOW),
    );
    let token = harness.keys.token(&ticket);
    let body = json!({ "token": token }).to_string();
    harness.post(VERIFY, &body).await.assert_problem(503, "UNAVAILABLE");
    harness.end().await;
}
