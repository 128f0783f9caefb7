//! The OpenAPI document of the admin API matches the responses.

use serde_json::{Value, json};

use super::beacon;
use super::harness::{AdminHarness, TOKEN};
use crate::beacon::{ROUND, SIGNATURE, opens_at};

/// A valid body of each call; null if it has none.
fn body_of(path: &str, method: &str) -> Value {
    let update = json!({"itemName": "A concert", "remainCount": 5, "waitingQueueEnabled": true});
    match (path.rsplit('/').next().unwrap(), method) {
        ("token-count-to-move", "put") => json!({"tokenCountToMove": 3}),
        ("tick-ms", "put") => json!({"tickMs": 500}),
        ("waiting-item", "post") => json!({"itemId": "new", "itemName": "New", "remainCount": 1}),
        ("manually", _) | ("{itemId}", "put") => update,
        ("policy", _) => json!({"maxActive": 3}),
        ("operators", "post") => json!({"name": "kim", "role": "viewer"}),
        ("invitations", _) => json!({"lane": "members", "expiresAt": "2023-12-01T20:00:00Z"}),
        ("access", "post") => json!({"rules": [{"kind": "block", "userId": "kim", "reason": "r"}]}),
        ("remove", _) => json!({"ids": ["6f1c0a52d0a94be1"]}),
        ("check", _) => json!({"itemId": "concert", "userId": "kim"}),
        ("contact", _) => json!({"contactUrl": "https://shop.example/help"}),
        ("forecast", _) => json!({"tokensPerTick": 5}),
        ("simulate", _) => json!({"arrivals": {"total": 5, "minutes": 1}, "stock": 3}),
        ("beacon", _) => json!({"round": ROUND, "signature": SIGNATURE}),
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

/// Asserts that all objects of an example have the fields of their schemas and no others.
fn assert_example(document: &Value, place: &str, schema: &Value, example: &Value) {
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    let schema = alternatives.chain([schema]).find(|schema| schema["type"] != "null").unwrap();
    let schema = resolved(document, schema);
    for (index, one) in example.as_array().into_iter().flatten().enumerate() {
        assert_example(document, &format!("{place}[{index}]"), &schema["items"], one);
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    if example.is_null() {
        return;
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(example.get(name.as_str().unwrap()).is_some(), "{place} has no {name}");
    }
    for (name, value) in example.as_object().unwrap_or_else(|| panic!("{place}: {example}")) {
        let field = format!("{place}.{name}");
        let schema = properties.get(name).unwrap_or_else(|| panic!("{field} is not in the schema"));
        assert_example(document, &field, schema, value);
    }
}

#[tokio::test]
async fn every_body_and_every_response_has_an_example_with_its_fields() {
    let document = AdminHarness::open().await.ok(200, "GET", "/openapi.json", "").await;
    let calls = document["paths"].as_object().unwrap().values();
    let mut examples = 0;
    for call in calls.flat_map(|methods| methods.as_object().unwrap().values()) {
        let responses = call["responses"].as_object().unwrap().values();
        for content in responses.chain([&call["requestBody"]]) {
            let json = &content["content"]["application/json"];
            if json.is_null() {
                continue;
            }
            let of_type = resolved(&document, &json["schema"])["examples"].as_array();
            let of_call = json.get("example");
            let all: Vec<_> = of_type.into_iter().flatten().chain(of_call).collect();
            assert!(!all.is_empty(), "{} has no example: {json}", call["operationId"]);
            for example in all {
                let place = call["operationId"].as_str().unwrap();
                assert_example(&document, place, &json["schema"], example);
                examples += 1;
            }
        }
    }
    assert!(examples >= 20, "{examples}");
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
            let call_name = path.rsplit('/').next().unwrap();
            let admin = match call_name {
                "beacon" => beacon::admin().await,
                _ => AdminHarness::open().await,
            };
            let rules = match call_name {
                "open" => r#"{"opening":{"opensAt":"2023-12-01T20:00:00Z"}}"#.to_owned(),
                "invitations" => r#"{"lanes":[{"name":"members","weight":30}]}"#.to_owned(),
                "beacon" => beacon::opening(opens_at(), beacon::drand(None)),
                _ => "{}".to_owned(),
            };
            admin.ok(200, "PATCH", "/waiting-item/concert/policy", &rules).await;
            if path.ends_with("{name}") {
                let kim = body_of("/operators", "post").to_string();
                admin.ok(201, "POST", "/operators", &kim).await;
            }
            let body = body_of(path, method);
            let text = if body.is_null() { String::new() } else { body.to_string() };
            let place = path.replace("{itemId}", "concert").replace("{name}", "kim");
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
