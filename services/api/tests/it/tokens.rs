use std::time::Duration;

use axum::http::Method;

use crate::harness::{MAX_AGE, World, line, request, ticket};

#[tokio::test(start_paused = true)]
async fn one_changed_bit_makes_a_token_worthless() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
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
        world.poll("concert", &changed).await.is_problem(401, "INVALID_TOKEN");
        refused += 1;
    }
    assert!(refused > 100, "{refused}");
    assert_eq!(world.store.calls("resolve"), 0, "forgeries never reach the store");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn made_up_tokens_are_refused() {
    let world = World::with_item("concert").await;
    let made_up = "kim-concert-00000000-0000-8000-8000-000000000000";
    for token in ["x", "me-", "kim-concert", made_up, &"a".repeat(500)] {
        world.poll("concert", token).await.is_problem(401, "INVALID_TOKEN");
        world.leave("concert", token).await.is_problem(401, "INVALID_TOKEN");
    }
    let challenge = world.poll("concert", made_up).await;
    assert_eq!(challenge.header("www-authenticate"), r#"Bearer error="invalid_token""#);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_token_is_good_for_its_item_only() {
    let world = World::with_item("concert").await;
    world.put_item("match", 10, true).await;
    let token = world.token("concert", "kim").await;
    world.poll("match", &token).await.is_problem(403, "TOKEN_MISMATCH");
    world.leave("match", &token).await.is_problem(403, "TOKEN_MISMATCH");
    world.poll("nowhere", &token).await.is_problem(403, "TOKEN_MISMATCH");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_token_is_good_for_its_person_only() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    let uri = ticket("concert", &token);
    for method in [Method::GET, Method::DELETE] {
        let other = request(method, &uri, &[("user-id", "lee")], "");
        world.call(other).await.is_problem(403, "TOKEN_MISMATCH");
    }
    let own = request(Method::GET, &uri, &[("user-id", "kim")], "");
    assert_eq!(world.call(own).await.json()["status"], "WAITING");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_genuine_token_of_an_item_without_a_trace_is_of_an_item_that_was_lost() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    let other = World::cold();
    other.is_ready().await;
    other.poll("concert", &token).await.is_problem(401, "INVALID_TOKEN");
    let ticket = daegi_domain::Ticket {
        item: crate::harness::id("nowhere"),
        user: daegi_domain::UserId::parse("kim").unwrap(),
        number: daegi_domain::Number::base_at(crate::harness::NOW),
    };
    let token = other.keys.token(&ticket);
    other.poll("nowhere", &token).await.is_problem(503, "UNAVAILABLE");
    other.end().await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_ticket_that_is_too_old_is_refused_everywhere_without_a_store_call() {
    let world = World::with_item("concert").await;
    let entered = world.token("concert", "kim").await;
    let waiting = world.token("concert", "lee").await;
    world.admit("concert", 1).await;
    world.until_status("concert", &entered, "ENTERABLE").await;
    world.clock.advance(MAX_AGE + Duration::from_secs(3600));
    assert_eq!(world.poll("concert", &waiting).await.status, 200, "not yet");
    let calls = ["resolve", "leave", "complete", "reenter"];
    let before = calls.map(|call| world.store.calls(call));
    world.clock.advance(Duration::from_millis(1));

    for token in [&entered, &waiting] {
        world.leave("concert", token).await.is_problem(410, "LINE_RESTARTED");
        let uri = ticket("concert", token);
        for uri in [uri.clone(), format!("{uri}?waitMs=5000"), format!("{uri}/events")] {
            world.get(&uri).await.is_problem(410, "LINE_RESTARTED");
        }
        let body = serde_json::json!({ "token": token }).to_string();
        let verdict = world.post("/internal/v1/item/concert/entry/verify", &body).await.json();
        assert_eq!(verdict["valid"], false, "{verdict}");
        assert_eq!(verdict["reason"], "LINE_RESTARTED", "{verdict}");
        let complete = world.post("/internal/v1/item/concert/entry/complete", &body).await;
        complete.is_problem(410, "LINE_RESTARTED");
    }
    assert_eq!(calls.map(|call| world.store.calls(call)), before, "{calls:?}");

    // Joining takes a new place, also for a user whose old ticket the store still has.
    let bearer = format!("Bearer {waiting}");
    let headers = [("user-id", "lee"), ("authorization", bearer.as_str())];
    let joined = world.call(request(Method::POST, &line("concert"), &headers, "")).await;
    assert_eq!(joined.status, 201, "{}", joined.text);
    let token = joined.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(world.poll("concert", &token).await.status, 200);
    world.end().await;
}
