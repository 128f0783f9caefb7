use std::time::Duration;

use axum::http::Method;
use daegi_domain::Policy;
use daegi_store::Store;
use daegi_testkit::eventually;
use serde_json::Value;

use crate::harness::{Answer, SOON, World, id, line, request, ticket};

#[tokio::test(start_paused = true)]
async fn a_poll_tells_the_exact_place() {
    let world = World::with_item("concert").await;
    let mut tokens = Vec::new();
    for user in ["kim", "lee", "park", "choi"] {
        tokens.push(world.token("concert", user).await);
    }
    let last = world.poll("concert", &tokens[3]).await;
    assert_eq!(last.status, 200);
    assert_eq!(last.header("cache-control"), "no-store");
    assert_eq!(last.json()["position"], 4);
    assert_eq!(last.json()["waitingCount"], 4);
    assert_eq!(last.json()["token"], tokens[3]);

    assert_eq!(world.leave("concert", &tokens[1]).await.status, 204);
    assert_eq!(world.poll("concert", &tokens[3]).await.json()["position"], 3);
    assert_eq!(world.poll("concert", &tokens[0]).await.json()["position"], 1);
    assert_eq!(world.poll("concert", &tokens[1]).await.json()["status"], "LEFT");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_says_when_to_ask_again() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    let polled = world.poll("concert", &token).await;
    let after = polled.json()["pollAfterMs"].as_u64().unwrap();
    assert!((800..=1_200).contains(&after), "the next tick may admit the first, spread: {after}");
    assert_eq!(polled.header("retry-after"), after.div_ceil(1000).to_string());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn polling_as_asked_cannot_lose_a_short_pass() {
    let world = World::with_item("concert").await;
    let policy = Policy { pass_ttl_seconds: 4, max_active: Some(1), ..Policy::default() };
    world.put("concert", 1000, true, Some(policy)).await;
    let mut last = String::new();
    for n in 0..500 {
        last = world.token("concert", &format!("user-{n}")).await;
    }
    world.admit("concert", 1).await;
    world.clock.advance(Duration::from_secs(60));
    for _ in 0..20 {
        let polled = world.poll("concert", &last).await;
        let after = polled.json()["pollAfterMs"].as_u64().unwrap();
        assert!(after <= 2_000, "{after} ms with a pass of 4 s");
        assert!(polled.header("retry-after").parse::<u64>().unwrap() <= 2);
    }
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_eta_is_promised_only_while_the_line_moves() {
    let world = World::with_item("concert").await;
    let mut tokens = Vec::new();
    for n in 0..30 {
        tokens.push(world.token("concert", &format!("user-{n}")).await);
    }
    world.admit("concert", 10).await;
    world.clock.advance(Duration::from_secs(5));
    let last = &tokens[29];
    eventually(SOON, "an eta", async || {
        let ticket = world.poll("concert", last).await.json();
        ticket["position"] == 20 && ticket["etaSeconds"]["p50"].as_u64() == Some(10)
    })
    .await;
    world.store.set_paused(&id("concert"), true, world.clock.now_ms()).await.unwrap();
    eventually(SOON, "no eta", async || {
        let ticket = world.poll("concert", last).await.json();
        ticket["lineState"] == "PAUSED" && ticket["etaSeconds"].is_null()
    })
    .await;
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn leaving_is_for_good_and_leaving_twice_is_no_mistake() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    for _ in 0..2 {
        let left = world.leave("concert", &token).await;
        assert_eq!((left.status.as_u16(), left.text.as_str()), (204, ""));
    }
    let ticket = world.poll("concert", &token).await;
    assert_eq!(ticket.json()["status"], "LEFT");
    assert_eq!(ticket.json()["pollAfterMs"], 0);
    assert_eq!(ticket.header("retry-after"), "");
    let again = world.join("concert", "kim").await;
    assert_eq!(again.status, 201, "leaving gives the place up");
    assert_ne!(again.json()["token"], token.as_str());
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn me_stands_for_the_token_in_the_header() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim:1+x@example.com").await;
    let bearer = format!("Bearer {token}");
    let me = ticket("concert", "me");
    let mine = |method| request(method, &me, &[("authorization", &bearer)], "");
    let polled = world.call(mine(Method::GET)).await;
    assert_eq!(polled.json()["userId"], "kim:1+x@example.com");
    assert_eq!(world.poll("concert", &token).await.status, 200, "such a token is also a path");
    assert_eq!(world.call(mine(Method::DELETE)).await.status, 204);
    assert_eq!(world.call(mine(Method::GET)).await.json()["status"], "LEFT");
    world.get(&me).await.is_problem(401, "INVALID_TOKEN");
    let basic = request(Method::GET, &me, &[("authorization", "Basic a2ltOg==")], "");
    world.call(basic).await.is_problem(401, "INVALID_TOKEN");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn everybody_may_look_at_a_line() {
    let world = World::with_item("concert").await;
    for user in ["kim", "lee", "park"] {
        world.join("concert", user).await;
    }
    world.admit("concert", 1).await;
    let found = eventually(SOON, "one is inside", async || {
        let found = world.get(&line("concert")).await;
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
    assert_eq!(shown.as_object().unwrap().len(), 6);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_is_seen_and_the_store_hears_of_it() {
    let world = World::with_item("concert").await;
    let token = world.token("concert", "kim").await;
    let number = world.number("concert", &token);
    eventually(SOON, "the mark", async || world.store.marks(&id("concert"), number) > 0).await;
    world.end().await;
}

/// What an answer says, without the moment to ask again, which is spread at random.
fn said(answer: &Answer) -> (u16, Value, String) {
    let mut json = answer.json();
    json.as_object_mut().unwrap().remove("pollAfterMs");
    let kept = answer.header("cache-control");
    (answer.status.as_u16(), json, format!("{}, {kept}", answer.header("content-type")))
}

#[tokio::test(start_paused = true)]
async fn however_an_address_is_written_the_answer_is_the_same() {
    let world = World::with_item("concert").await;
    world.token("concert", "kim").await;
    let token = world.token("concert", "lee").await;
    let plain = said(&world.poll("concert", &token).await);
    assert_eq!(plain.1["position"], 2);
    let escaped = token.replacen("lee", "%6cee", 1);
    let others = [ticket("concert", &format!("{token}?waitMs=0")), ticket("%63oncert", &escaped)];
    for other in others {
        assert_eq!(said(&world.get(&other).await), plain, "{other}");
    }
    let bearer = [("authorization", &*format!("Bearer {token}"))];
    let me = request(Method::GET, &ticket("concert", "me"), &bearer, "");
    assert_eq!(said(&world.call(me).await), plain);
    let named = |user| request(Method::GET, &ticket("concert", &token), &[("user-id", user)], "");
    assert_eq!(said(&world.call(named("lee")).await), plain);
    world.call(named("kim")).await.is_problem(403, "TOKEN_MISMATCH");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn however_a_person_is_named_the_place_is_the_same() {
    let world = World::with_item("concert").await;
    let (header, body) = (world.join("concert", "kim").await, r#"{"userId":"kim"}"#);
    assert_eq!(header.status, 201);
    let again = world.join("concert", "kim").await;
    assert_eq!(again.status, 200);
    assert_eq!(said(&world.post(&line("concert"), body).await), said(&again));
    assert_eq!(said(&world.join("%63oncert", "kim").await), said(&again));
    world.end().await;
}
