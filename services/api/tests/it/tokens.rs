use std::time::Duration;

use axum::http::Method;

use crate::harness::{Harness, MAX_AGE, line, request, ticket};

#[tokio::test(start_paused = true)]
async fn a_token_with_one_changed_bit_is_refused() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    let mut refused = 0;
    for bit in 0..token.len() * 8 {
        let mut bytes = token.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(changed) = String::from_utf8(bytes) else {
            continue;
        };
        if !changed.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~@:+".contains(&b)) {
            continue;
        }
        harness.poll("concert", &changed).await.assert_problem(401, "INVALID_TOKEN");
        refused += 1;
    }
    assert!(refused > 100, "{refused}");
    assert_eq!(harness.store.calls("resolve"), 0, "forgeries never reach the store");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn invented_tokens_are_refused() {
    let harness = Harness::with_item("concert").await;
    let made_up = "kim-concert-00000000-0000-8000-8000-000000000000";
    for token in ["x", "me-", "kim-concert", made_up, &"a".repeat(500)] {
        harness.poll("concert", token).await.assert_problem(401, "INVALID_TOKEN");
        harness.leave("concert", token).await.assert_problem(401, "INVALID_TOKEN");
    }
    let challenge = harness.poll("concert", made_up).await;
    assert_eq!(challenge.header("www-authenticate"), r#"Bearer error="invalid_token""#);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_token_is_valid_for_its_item_only() {
    let harness = Harness::with_item("concert").await;
    harness.put_item("match", 10, true).await;
    let token = harness.token("concert", "kim").await;
    harness.poll("match", &token).await.assert_problem(403, "TOKEN_MISMATCH");
    harness.leave("match", &token).await.assert_problem(403, "TOKEN_MISMATCH");
    harness.poll("nowhere", &token).await.assert_problem(403, "TOKEN_MISMATCH");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_token_is_valid_for_its_user_only() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    let uri = ticket("concert", &token);
    for method in [Method::GET, Method::DELETE] {
        let other = request(method, &uri, &[("user-id", "lee")], "");
        harness.call(other).await.assert_problem(403, "TOKEN_MISMATCH");
    }
    let own = request(Method::GET, &uri, &[("user-id", "kim")], "");
    assert_eq!(harness.call(own).await.json()["status"], "WAITING");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_valid_token_of_an_unknown_item_gets_503() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    let other = Harness::cold();
    other.wait_until_ready().await;
    other.poll("concert", &token).await.assert_problem(401, "INVALID_TOKEN");
    let ticket = daegi_domain::Ticket::new(
        crate::harness::id("nowhere"),
        daegi_domain::UserId::parse("kim").unwrap(),
        daegi_domain::Number::base_at(crate::harness::NOW),
    );
    let token = other.keys.token(&ticket);
    other.poll("nowhere", &token).await.assert_problem(503, "UNAVAILABLE");
    other.end().await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_ticket_that_is_too_old_is_refused_everywhere_without_a_store_call() {
    let harness = Harness::with_item("concert").await;
    let entered = harness.token("concert", "kim").await;
    let waiting = harness.token("concert", "lee").await;
    harness.admit("concert", 1).await;
    harness.until_status("concert", &entered, "ENTERABLE").await;
    harness.clock.advance(MAX_AGE + Duration::from_secs(3600));
    assert_eq!(harness.poll("concert", &waiting).await.status, 200, "not yet");
    let calls = ["resolve", "leave", "complete", "restore_entry"];
    let before = calls.map(|call| harness.store.calls(call));
    harness.clock.advance(Duration::from_millis(1));

    for token in [&entered, &waiting] {
        harness.leave("concert", token).await.assert_problem(410, "LINE_RESTARTED");
        let uri = ticket("concert", token);
        for uri in [uri.clone(), format!("{uri}?waitMs=5000"), format!("{uri}/events")] {
            harness.get(&uri).await.assert_problem(410, "LINE_RESTARTED");
        }
        let body = serde_json::json!({ "token": token }).to_string();
        let verdict = harness.post("/internal/v1/item/concert/entry/verify", &body).await.json();
        assert_eq!(verdict["valid"], false, "{verdict}");
        assert_eq!(verdict["reason"], "LINE_RESTARTED", "{verdict}");
        let complete = harness.post("/internal/v1/item/concert/entry/complete", &body).await;
        complete.assert_problem(410, "LINE_RESTARTED");
    }
    assert_eq!(calls.map(|call| harness.store.calls(call)), before, "{calls:?}");

    // Joining takes a new place, also for a user whose old ticket the store still has.
    let bearer = format!("Bearer {waiting}");
    let headers = [("user-id", "lee"), ("authorization", bearer.as_str())];
    let joined = harness.call(request(Method::POST, &line("concert"), &headers, "")).await;
    assert_eq!(joined.status, 201, "{}", joined.text);
    let token = joined.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(harness.poll("concert", &token).await.status, 200);
    harness.end().await;
}
