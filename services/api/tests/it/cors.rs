//! Calls of pages of other origins.

use axum::http::Method;
use daegi_runtime::http::CorsOrigins;

use crate::harness::{Harness, TestResponse, line, request, ticket};

const SHOP: &str = "https://shop.example";

async fn call(harness: &Harness, method: Method, uri: &str, origin: &str) -> TestResponse {
    let preflight = ("access-control-request-method", "POST");
    let headers = [("origin", origin), ("user-id", "kim"), preflight];
    harness.call(request(method, uri, &headers, "")).await
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_configured_origin_may_join_and_poll_and_no_other_one() {
    let origins = CorsOrigins::parse("https://shop.example,https://app.example").unwrap();
    let harness = Harness::with("concert", |deps| deps.cors_origins = origins).await;
    let asked = call(&harness, Method::OPTIONS, &line("concert"), SHOP).await;
    assert_eq!(asked.status.as_u16(), 204);
    assert_eq!(asked.header("access-control-allow-origin"), SHOP);
    assert!(asked.header("access-control-allow-methods").contains("DELETE"));
    for sent in ["authorization", "user-id", "daegi-identity", "content-type"] {
        assert!(asked.header("access-control-allow-headers").contains(sent), "{sent}");
    }
    // Without this header browsers send no cookies.
    assert_eq!(asked.header("access-control-allow-credentials"), "");

    let joined = call(&harness, Method::POST, &line("concert"), SHOP).await;
    assert_eq!((joined.status.as_u16(), joined.header("access-control-allow-origin")), (201, SHOP));
    let token = joined.json()["token"].as_str().unwrap().to_owned();
    for uri in [ticket("concert", &token), line("concert"), ticket("concert", "forged")] {
        let answer = call(&harness, Method::GET, &uri, SHOP).await;
        assert_eq!(answer.header("access-control-allow-origin"), SHOP, "{uri}");
        assert_eq!(answer.header("vary"), "Origin");
        let other = call(&harness, Method::GET, &uri, "https://evil.example").await;
        assert_eq!(other.header("access-control-allow-origin"), "", "{uri}");
        let none = harness.get(&uri).await;
        assert_eq!(none.header("access-control-allow-origin"), "", "{uri}");
    }
    let other = call(&harness, Method::OPTIONS, &line("concert"), "https://evil.example").await;
    assert_eq!((other.status.as_u16(), other.header("access-control-allow-origin")), (405, ""));
    harness.end().await;
}
