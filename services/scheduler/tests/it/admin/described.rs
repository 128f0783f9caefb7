//! The description of the admin API is true.

use serde_json::{Value, json};

use super::desk::Desk;

/// A body that each call takes, where it takes one.
fn body_of(path: &str, method: &str) -> Value {
    let by_hand = json!({"itemName": "A concert", "remainCount": 5, "waitingQueueEnabled": true});
    match (path.rsplit('/').next().unwrap(), method) {
        ("token-count-to-move", "put") => json!({"tokenCountToMove": 3}),
        ("tick-ms", "put") => json!({"tickMs": 500}),
        ("waiting-item", "post") => json!({"itemId": "new", "itemName": "New", "remainCount": 1}),
        ("manually", _) | ("{itemId}", "put") => by_hand,
        ("policy", _) => json!({"maxActive": 3}),
        _ => Value::Null,
    }
}

/// The schema of an answer, where it is described by reference, too.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(place) => document.pointer(place.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

#[tokio::test]
async fn every_call_that_is_described_is_there_and_answers_what_is_said() {
    let document = Desk::open().await.ok(200, "GET", "/openapi.json", "").await;
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 15);
    for (path, methods) in paths {
        for (method, call) in
            methods.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
        {
            let desk = Desk::open().await;
            let body = body_of(path, method);
            let text = if body.is_null() { String::new() } else { body.to_string() };
            let place = path.replace("{itemId}", "concert");
            let reply = desk.call(&method.to_uppercase(), &place, &text).await;
            let described = &call["responses"][reply.status.as_str()];
            assert!(described.is_object(), "{method} {path} answers {reply:?}");
            let schema = resolved(&document, &described["content"]["application/json"]["schema"]);
            let said: Vec<_> = schema["properties"].as_object().into_iter().flatten().collect();
            let found: Vec<_> = reply.body.as_object().into_iter().flatten().collect();
            let names = |pairs: &[(&String, &Value)]| {
                let mut names: Vec<_> = pairs.iter().map(|(name, _)| (*name).clone()).collect();
                names.sort();
                names
            };
            assert_eq!(names(&said), names(&found), "{method} {path}");
        }
    }
}
