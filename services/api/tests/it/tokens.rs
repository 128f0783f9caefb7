use axum::http::Method;

use crate::harness::{World, request, ticket};

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
        number: daegi_domain::Number(7),
    };
    let token = other.keys.token(&ticket);
    other.poll("nowhere", &token).await.is_problem(503, "UNAVAILABLE");
    other.end().await;
    world.end().await;
}
