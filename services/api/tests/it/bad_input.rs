use axum::http::Method;
use axum::http::header::ALLOW;

use crate::harness::{World, line, request, ticket};

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test(start_paused = true)]
async fn ids_outside_their_alphabet_are_refused_with_a_reason() {
    let world = World::with_item("concert").await;
    let long = "x".repeat(65);
    for bad in ["a%20b", "a%2Fb", "a@b", "%EC%BD%98", "a%00", "a%0A", "~daegi.warm-up-1", &long] {
        let refused = world.join(bad, "kim").await;
        refused.is_problem(400, "INVALID_REQUEST");
        world.get(&line(bad)).await.is_problem(400, "INVALID_REQUEST");
        world.get(&ticket(bad, "x")).await.is_problem(400, "INVALID_REQUEST");
        let verify = format!("/internal/v1/item/{bad}/entry/verify");
        world.post(&verify, r#"{"token":"x"}"#).await.is_problem(400, "INVALID_REQUEST");
    }
    world.get(&line("")).await.is_problem(400, "INVALID_REQUEST");
    world.get(&line("%FF")).await.is_problem(400, "INVALID_REQUEST");
    let reason = world.join("a%20b", "kim").await.json();
    assert_eq!(reason["detail"], "itemId contains ' ', allowed are A-Z a-z 0-9 . _ ~ -");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn people_outside_their_alphabet_are_refused() {
    let world = World::with_item("concert").await;
    let long = "x".repeat(129);
    for bad in ["", "a b", "a/b", "%41", "<script>", &long] {
        world.join("concert", bad).await.is_problem(400, "INVALID_REQUEST");
        let body = serde_json::json!({ "userId": bad }).to_string();
        world.post(&line("concert"), &body).await.is_problem(400, "INVALID_REQUEST");
    }
    let twice = [("user-id", "kim"), ("user-id", "lee")];
    let twice = request(Method::POST, &line("concert"), &twice, "");
    world.call(twice).await.is_problem(400, "INVALID_REQUEST");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn bodies_that_do_not_fit_are_refused() {
    let world = World::with_item("concert").await;
    let before = world.store.calls("join");
    let bad =
        ["", "{", "[]", "null", "7", r#""kim""#, "{}", r#"{"userId":7}"#, r#"{"user":"kim"}"#];
    for body in bad.into_iter().chain([r#"{"userId":"kim","admin":true}"#, r#"{"userId":"kim"}x"#])
    {
        world.post(&line("concert"), body).await.is_problem(400, "INVALID_REQUEST");
    }
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let form = request(Method::POST, &line("concert"), &form, "userId=kim");
    world.call(form).await.is_problem(415, "UNSUPPORTED_MEDIA_TYPE");
    assert_eq!(world.store.calls("join"), before, "nobody joined");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn ten_megabytes_are_too_much() {
    let world = World::with_item("concert").await;
    let body = format!(r#"{{"userId":"{}"}}"#, "x".repeat(10 * 1024 * 1024));
    let huge = request(Method::POST, &line("concert"), &[JSON], &body);
    world.call(huge).await.is_problem(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(world.join("concert", "kim").await.status, 201, "and nothing is broken");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_is_refused_where_a_call_needs_none_and_above_what_it_needs() {
    let world = World::with_item("concert").await;
    let uri = ticket("concert", &world.token("concert", "kim").await);
    let padded = |length: usize| format!("{:length$}", r#"{"userId":"kim"}"#);
    let verify = "/internal/v1/item/concert/entry/verify";
    for (method, uri, body) in [
        (Method::POST, line("concert"), padded(1025)),
        (Method::GET, uri.clone(), padded(16)),
        (Method::DELETE, uri, padded(16)),
    ] {
        let refused = world.call(request(method, &uri, &[JSON], &body)).await;
        refused.is_problem(413, "PAYLOAD_TOO_LARGE");
    }
    let fits = request(Method::POST, &line("concert"), &[JSON], &padded(1024));
    assert_eq!(world.call(fits).await.status, 200);
    world.post(verify, &padded(4097)).await.is_problem(413, "PAYLOAD_TOO_LARGE");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever_or_less_than_nothing() {
    let world = World::with_item("concert").await;
    let uri = ticket("concert", &world.token("concert", "kim").await);
    for bad in ["-1", "30001", "99999999999999999999", "1.5", "soon", "", "1&waitMs=2"] {
        let refused = world.get(&format!("{uri}?waitMs={bad}")).await;
        refused.is_problem(400, "INVALID_REQUEST");
    }
    assert_eq!(world.get(&format!("{uri}?waitMs=0")).await.status, 200);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn unknown_routes_and_methods_are_problems() {
    let world = World::with_item("concert").await;
    for nowhere in ["/", "/api", "/api/v1/item", "/api/v2/item/a/waiting-queue"] {
        world.get(nowhere).await.is_problem(404, "NOT_FOUND");
    }
    let put = world.call(request(Method::PUT, &line("concert"), &[], "")).await;
    put.is_problem(405, "METHOD_NOT_ALLOWED");
    let allow = put.headers[ALLOW].to_str().unwrap();
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn unknown_items_are_not_found_and_not_kept_for_long() {
    let world = World::with_item("concert").await;
    for n in 0..100 {
        world.join(&format!("nowhere-{n}"), "kim").await.is_problem(404, "ITEM_NOT_FOUND");
    }
    world.get(&line("later")).await.is_problem(404, "ITEM_NOT_FOUND");
    world.put_item("later", 1, true).await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(world.get(&line("later")).await.status, 200, "a 404 is remembered for a second");
    world.end().await;
}
