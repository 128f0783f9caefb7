use axum::http::Method;
use axum::http::header::ALLOW;

use crate::harness::{Harness, line, request, ticket};

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test(start_paused = true)]
async fn ids_outside_their_alphabet_are_refused_with_a_reason() {
    let harness = Harness::with_item("concert").await;
    let long = "x".repeat(65);
    for bad in ["a%20b", "a%2Fb", "a@b", "%EC%BD%98", "a%00", "a%0A", "~daegi.warm-up-1", &long] {
        let refused = harness.join(bad, "kim").await;
        refused.assert_problem(400, "INVALID_REQUEST");
        harness.get(&line(bad)).await.assert_problem(400, "INVALID_REQUEST");
        harness.get(&ticket(bad, "x")).await.assert_problem(400, "INVALID_REQUEST");
        let verify = format!("/internal/v1/item/{bad}/entry/verify");
        harness.post(&verify, r#"{"token":"x"}"#).await.assert_problem(400, "INVALID_REQUEST");
    }
    harness.get(&line("")).await.assert_problem(400, "INVALID_REQUEST");
    harness.get(&line("%FF")).await.assert_problem(400, "INVALID_REQUEST");
    let reason = harness.join("a%20b", "kim").await.json();
    assert_eq!(reason["detail"], "itemId contains ' ', allowed are A-Z a-z 0-9 . _ ~ -");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn user_ids_outside_their_alphabet_are_refused() {
    let harness = Harness::with_item("concert").await;
    let long = "x".repeat(129);
    for bad in ["", "a b", "a/b", "%41", "<script>", &long] {
        harness.join("concert", bad).await.assert_problem(400, "INVALID_REQUEST");
        let body = serde_json::json!({ "userId": bad }).to_string();
        harness.post(&line("concert"), &body).await.assert_problem(400, "INVALID_REQUEST");
    }
    let twice = [("user-id", "kim"), ("user-id", "lee")];
    let twice = request(Method::POST, &line("concert"), &twice, "");
    harness.call(twice).await.assert_problem(400, "INVALID_REQUEST");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn bodies_that_do_not_fit_are_refused() {
    let harness = Harness::with_item("concert").await;
    let before = harness.store.calls("join");
    let bad =
        ["", "{", "[]", "null", "7", r#""kim""#, "{}", r#"{"userId":7}"#, r#"{"user":"kim"}"#];
    for body in bad.into_iter().chain([r#"{"userId":"kim","admin":true}"#, r#"{"userId":"kim"}x"#])
    {
        harness.post(&line("concert"), body).await.assert_problem(400, "INVALID_REQUEST");
    }
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let form = request(Method::POST, &line("concert"), &form, "userId=kim");
    harness.call(form).await.assert_problem(415, "UNSUPPORTED_MEDIA_TYPE");
    assert_eq!(harness.store.calls("join"), before, "no join reached the store");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_of_ten_megabytes_is_refused() {
    let harness = Harness::with_item("concert").await;
    let body = format!(r#"{{"userId":"{}"}}"#, "x".repeat(10 * 1024 * 1024));
    let huge = request(Method::POST, &line("concert"), &[JSON], &body);
    harness.call(huge).await.assert_problem(413, "PAYLOAD_TOO_LARGE");
    assert_eq!(harness.join("concert", "kim").await.status, 201, "and nothing is broken");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_is_refused_where_a_call_needs_none_and_above_what_it_needs() {
    let harness = Harness::with_item("concert").await;
    let uri = ticket("concert", &harness.token("concert", "kim").await);
    let padded = |length: usize| format!("{:length$}", r#"{"userId":"kim"}"#);
    let verify = "/internal/v1/item/concert/entry/verify";
    for (method, uri, body) in [
        (Method::POST, line("concert"), padded(4097)),
        (Method::GET, uri.clone(), padded(16)),
        (Method::DELETE, uri, padded(16)),
    ] {
        let refused = harness.call(request(method, &uri, &[JSON], &body)).await;
        refused.assert_problem(413, "PAYLOAD_TOO_LARGE");
    }
    let fits = request(Method::POST, &line("concert"), &[JSON], &padded(4096));
    assert_eq!(harness.call(fits).await.status, 200);
    harness.post(verify, &padded(4097)).await.assert_problem(413, "PAYLOAD_TOO_LARGE");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn wait_ms_outside_its_range_is_refused() {
    let harness = Harness::with_item("concert").await;
    let uri = ticket("concert", &harness.token("concert", "kim").await);
    for bad in ["-1", "30001", "99999999999999999999", "1.5", "soon", "", "1&waitMs=2"] {
        let refused = harness.get(&format!("{uri}?waitMs={bad}")).await;
        refused.assert_problem(400, "INVALID_REQUEST");
    }
    assert_eq!(harness.get(&format!("{uri}?waitMs=0")).await.status, 200);
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn unknown_routes_and_methods_are_problems() {
    let harness = Harness::with_item("concert").await;
    for nowhere in ["/api", "/api/v1/item", "/api/v2/item/a/waiting-queue"] {
        harness.get(nowhere).await.assert_problem(404, "NOT_FOUND");
    }
    let put = harness.call(request(Method::PUT, &line("concert"), &[], "")).await;
    put.assert_problem(405, "METHOD_NOT_ALLOWED");
    let allow = put.headers[ALLOW].to_str().unwrap();
    assert!(allow.contains("GET") && allow.contains("POST"), "{allow}");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn unknown_items_are_not_found_and_not_kept_for_long() {
    let harness = Harness::with_item("concert").await;
    for n in 0..100 {
        harness.join(&format!("nowhere-{n}"), "kim").await.assert_problem(404, "ITEM_NOT_FOUND");
    }
    harness.get(&line("later")).await.assert_problem(404, "ITEM_NOT_FOUND");
    harness.put_item("later", 1, true).await;
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    assert_eq!(harness.get(&line("later")).await.status, 200, "a 404 is remembered for a second");
    harness.end().await;
}
