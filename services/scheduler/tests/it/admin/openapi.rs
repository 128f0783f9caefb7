//! The OpenAPI document of the admin API matches the responses.

use serde_json::{Value, json};

use super::harness::AdminHarness;

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
