//! The OpenAPI document of the admin API matches the responses.

use serde_json::{Value, json};

use super::harness::{AdminHarness, TOKEN};

/// A valid body of each call; null if it has none.
fn body_of(path: &str, method: &str) -> Value {
    let update = json!({"itemName": "A concert", "remainCount": 5, "waitingQueueEnabled": true});
    match (path.rsplit('/').next().unwrap(), method) {
        ("token-count-to-move", "put") => json!({"tokenCountToMove": 3}),
        ("tick-ms", "put") => json!({"tickMs": 500}),
        ("waiting-item", "post") => json!({"itemId": "new", "itemName": "New", "remainCount": 1}),
        ("manually", _) | ("{itemId}", "put") => update,
        ("policy", _) => json!({"maxActive": 3}),
        _ => Value::Null,
    }
}

/// Resolves a reference to a schema.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(place) => document.pointer(place.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

#[tokio::test]
async fn the_docs_page_lists_every_call_and_needs_no_token() {
    let admin = AdminHarness::open().await;
    let document = admin.ok(200, "GET", "/openapi.json", "").await;
    let (status, headers, page) = admin.page("/admin/docs").await;
    assert_eq!(status, 200);
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    for path in document["paths"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("<code>/internal/admin/v1{path}</code>")), "{path}");
    }
    for href in page.split("href=\"#").skip(1) {
        let target = href.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{target}\"")), "#{target} leads nowhere");
    }
    assert!(!page.contains(TOKEN), "the page is the same for every installation");
    let (status, headers, _) = admin.page("/admin/docs.css").await;
    assert_eq!(status, 200);
    assert_eq!(headers["content-type"], "text/css; charset=utf-8");
}

#[tokio::test]
async fn every_documented_call_exists_and_returns_the_documented_fields() {
    let document = AdminHarness::open().await.ok(200, "GET", "/openapi.json", "").await;
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 15);
    for (path, methods) in paths {
        for (method, call) in
            methods.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
        {
            let admin = AdminHarness::open().await;
            let body = body_of(path, method);
            let text = if body.is_null() { String::new() } else { body.to_string() };
            let place = path.replace("{itemId}", "concert");
            let reply = admin.call(&method.to_uppercase(), &place, &text).await;
            let described = &call["responses"][reply.status.as_str()];
            assert!(described.is_object(), "{method} {path} returned {reply:?}");
            let schema = resolved(&document, &described["content"]["application/json"]["schema"]);
            let documented: Vec<_> =
                schema["properties"].as_object().into_iter().flatten().collect();
            let found: Vec<_> = reply.body.as_object().into_iter().flatten().collect();
            let names = |pairs: &[(&String, &Value)]| {
                let mut names: Vec<_> = pairs.iter().map(|(name, _)| (*name).clone()).collect();
                names.sort();
                names
            };
            assert_eq!(names(&documented), names(&found), "{method} {path}");
        }
    }
}
