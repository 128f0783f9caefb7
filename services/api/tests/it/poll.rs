use std::time::Duration;

use axum::http::Method;
use daegi_domain::Policy;
use daegi_store::ItemStore;
use daegi_testkit::eventually;
use serde_json::Value;

use crate::harness::{Harness, TEST_TIMEOUT, TestResponse, id, line, request, ticket};

#[tokio::test(start_paused = true)]
async fn a_poll_returns_the_exact_position() {
    let harness = Harness::with_item("concert").await;
    let mut tokens = Vec::new();
    for user in ["kim", "lee", "park", "choi"] {
        tokens.push(harness.token("concert", user).await);
    }
    let last = harness.poll("concert", &tokens[3]).await;
    assert_eq!(last.status, 200);
    assert_eq!(last.header("cache-control"), "no-store");
    assert_eq!(last.json()["position"], 4);
    assert_eq!(last.json()["waitingCount"], 4);
    assert_eq!(last.json()["token"], tokens[3]);

    assert_eq!(harness.leave("concert", &tokens[1]).await.status, 204);
    assert_eq!(harness.poll("concert", &tokens[3]).await.json()["position"], 3);
    assert_eq!(harness.poll("concert", &tokens[0]).await.json()["position"], 1);
    assert_eq!(harness.poll("concert", &tokens[1]).await.json()["status"], "LEFT");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_returns_when_to_poll_again() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    let polled = harness.poll("concert", &token).await;
    let after = polled.json()["pollAfterMs"].as_u64().unwrap();
    assert!((800..=1_200).contains(&after), "the next tick may admit the first, spread: {after}");
    assert_eq!(polled.header("retry-after"), after.div_ceil(1000).to_string());
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_obedient_client_does_not_miss_a_short_pass() {
    let harness = Harness::with_item("concert").await;
    let policy = Policy { pass_ttl_seconds: 4, max_active: Some(1), ..Policy::default() };
    harness.put("concert", 1000, true, Some(policy)).await;
    let mut last = String::new();
    for n in 0..500 {
        last = harness.token("concert", &format!("user-{n}")).await;
    }
    harness.admit("concert", 1).await;
    harness.clock.advance(Duration::from_secs(60));
    for _ in 0..20 {
        let polled = harness.poll("concert", &last).await;
        let after = polled.json()["pollAfterMs"].as_u64().unwrap();
        assert!(after <= 2_000, "{after} ms with a pass of 4 s");
        assert!(polled.header("retry-after").parse::<u64>().unwrap() <= 2);
    }
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_eta_is_returned_only_while_the_line_moves() {
    let harness = Harness::with_item("concert").await;
    let mut tokens = Vec::new();
    for n in 0..30 {
        tokens.push(harness.token("concert", &format!("user-{n}")).await);
    }
    harness.admit("concert", 10).await;
    harness.clock.advance(Duration::from_secs(5));
    let last = &tokens[29];
    eventually(TEST_TIMEOUT, "an eta", async || {
        let ticket = harness.poll("concert", last).await.json();
        ticket["position"] == 20 && ticket["etaSeconds"]["p50"].as_u64().is_some_and(|p50| p50 <= 3)
    })
    .await;
    harness.store.set_paused(&id("concert"), true, harness.clock.now_ms()).await.unwrap();
    eventually(TEST_TIMEOUT, "no eta", async || {
        let ticket = harness.poll("concert", last).await.json();
        ticket["lineState"] == "PAUSED" && ticket["etaSeconds"].is_null()
    })
    .await;
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn leaving_is_final_and_idempotent() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    for _ in 0..2 {
        let left = harness.leave("concert", &token).await;
        assert_eq!((left.status.as_u16(), left.text.as_str()), (204, ""));
    }
    let ticket = harness.poll("concert", &token).await;
    assert_eq!(ticket.json()["status"], "LEFT");
    assert_eq!(ticket.json()["pollAfterMs"], 0);
    assert_eq!(ticket.header("retry-after"), "");
    let again = harness.join("concert", "kim").await;
    assert_eq!(again.status, 201, "leaving gives the place up");
    assert_ne!(again.json()["token"], token.as_str());
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn me_stands_for_the_token_in_the_header() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim:1+x@example.com").await;
    let bearer = format!("Bearer {token}");
    let me = ticket("concert", "me");
    let mine = |method| request(method, &me, &[("authorization", &bearer)], "");
    let polled = harness.call(mine(Method::GET)).await;
    assert_eq!(polled.json()["userId"], "kim:1+x@example.com");
    assert_eq!(harness.poll("concert", &token).await.status, 200, "such a token is also a path");
    assert_eq!(harness.call(mine(Method::DELETE)).await.status, 204);
    assert_eq!(harness.call(mine(Method::GET)).await.json()["status"], "LEFT");
    harness.get(&me).await.assert_problem(401, "INVALID_TOKEN");
    let basic = request(Method::GET, &me, &[("authorization", "Basic a2ltOg==")], "");
    harness.call(basic).await.assert_problem(401, "INVALID_TOKEN");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_line_is_public() {
    let harness = Harness::with_item("concert").await;
    for user in ["kim", "lee", "park"] {
        harness.join("concert", user).await;
    }
    harness.admit("concert", 1).await;
    let found = eventually(TEST_TIMEOUT, "one is inside", async || {
        let found = harness.get(&line("concert")).await;
        (found.json()["enteredCount"] == 1).then_some(found)
    })
    .await;
    assert_eq!(found.header("cache-control"), "public, max-age=1");
    let shown = found.json();
    assert_eq!(shown["itemId"], "concert");
    assert_eq!(shown["itemName"], "A concert");
    assert_eq!(shown["lineState"], "OPEN");
    assert_eq!(shown["waitingCount"], 2);
    assert!(shown["admittedPerSecond"].as_f64().unwrap() > 0.0);
    assert_eq!(shown["lanes"], serde_json::json!([]), "a line without lanes");
    assert_eq!(shown.as_object().unwrap().len(), 15);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_join_marks_the_ticket_as_seen_in_the_store() {
    let harness = Harness::with_item("concert").await;
    let token = harness.token("concert", "kim").await;
    let number = harness.number("concert", &token);
    eventually(TEST_TIMEOUT, "the mark", async || harness.store.marks(&id("concert"), number) > 0)
        .await;
    harness.end().await;
}

/// The comparable parts of a response, without the random `pollAfterMs`.
fn comparable(response: &TestResponse) -> (u16, Value, String) {
    let mut json = response.json();
    json.as_object_mut().unwrap().remove("pollAfterMs");
    let kept = response.header("cache-control");
    (response.status.as_u16(), json, format!("{}, {kept}", response.header("content-type")))
}

#[tokio::test(start_paused = true)]
async fn equivalent_urls_have_the_same_response() {
    let harness = Harness::with_item("concert").await;
    harness.token("concert", "kim").await;
    let token = harness.token("concert", "lee").await;
    let plain = comparable(&harness.poll("concert", &token).await);
    assert_eq!(plain.1["position"], 2);
    let escaped = token.replacen("lee", "%6cee", 1);
    let others = [ticket("concert", &format!("{token}?waitMs=0")), ticket("%63oncert", &escaped)];
    for other in others {
        assert_eq!(comparable(&harness.get(&other).await), plain, "{other}");
    }
    let bearer = [("authorization", &*format!("Bearer {token}"))];
    let me = request(Method::GET, &ticket("concert", "me"), &bearer, "");
    assert_eq!(comparable(&harness.call(me).await), plain);
    let named = |user| request(Method::GET, &ticket("concert", &token), &[("user-id", user)], "");
    assert_eq!(comparable(&harness.call(named("lee")).await), plain);
    harness.call(named("kim")).await.assert_problem(403, "TOKEN_MISMATCH");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn header_and_body_name_the_same_user() {
    let harness = Harness::with_item("concert").await;
    let (header, body) = (harness.join("concert", "kim").await, r#"{"userId":"kim"}"#);
    assert_eq!(header.status, 201);
    let again = harness.join("concert", "kim").await;
    assert_eq!(again.status, 200);
    assert_eq!(comparable(&harness.post(&line("concert"), body).await), comparable(&again));
    assert_eq!(comparable(&harness.join("%63oncert", "kim").await), comparable(&again));
    harness.end().await;
}
