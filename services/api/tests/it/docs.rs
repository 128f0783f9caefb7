use axum::http::Method;
use serde_json::Value;

use crate::harness::{Harness, request};

fn operations(document: &Value) -> Vec<(String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let of = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(|method| (path.clone(), method.to_uppercase())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn every_documented_route_is_served_and_no_other_method_is() {
    let harness = Harness::with_item("concert").await;
    let document = harness.get("/openapi.json").await.json();
    let documented = operations(&document);
    assert_eq!(documented.len(), 29);
    // The gate answers every method.
    for (path, _) in documented.iter().filter(|(path, _)| path != "/gate/{itemId}") {
        let uri = path.replace("{itemId}", "concert").replace("{token}", "x");
        let uri = uri.replace("{language}", "en");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let call = request(Method::from_bytes(method.as_bytes()).unwrap(), &uri, &[], "");
            let answer = harness.call(call).await;
            let code =
                serde_json::from_str::<Value>(&answer.text).unwrap_or_default()["code"].clone();
            let served = code != "METHOD_NOT_ALLOWED" && code != "NOT_FOUND";
            let known = documented.contains(&(path.clone(), method.to_owned()));
            assert_eq!(served, known, "{method} {path}: {code}");
        }
    }
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_document_is_complete() {
    let harness = Harness::with_item("concert").await;
    let answer = harness.get("/openapi.json").await;
    assert_eq!(answer.header("content-type"), "application/json");
    let document = answer.json();
    assert_eq!(document, daegi_api::openapi_document());
    assert_eq!(document["openapi"], "3.1.0");
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (index, _) in answer.text.match_indices("#/components/schemas/") {
        let name: String = answer.text[index..].chars().take_while(|c| *c != '"').collect();
        let name = name.rsplit('/').next().unwrap();
        assert!(schemas.contains_key(name), "{name} is mentioned and missing");
    }
    let ticket = &schemas["Ticket"];
    assert_eq!(ticket["required"].as_array().unwrap().len(), 19, "{ticket}");
    assert!(schemas["Join"]["required"].is_null(), "userId may be left out");
    let poll = &document["paths"]["/api/v1/item/{itemId}/waiting-queue/{token}"]["get"];
    let answers: Vec<_> = poll["responses"].as_object().unwrap().keys().collect();
    assert_eq!(answers, ["200", "400", "401", "403", "404", "410", "429", "503"]);
    harness.end().await;
}

#[test]
fn every_type_of_an_operation_has_examples_with_its_fields() {
    let document = daegi_api::openapi_document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in ["Join", "Ticket", "Line", "TokenOrPass", "Verdict", "Completed", "PageTexts"] {
        let schema = &schemas[name];
        let known = schema["properties"].as_object().unwrap();
        let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
        for example in schema["examples"].as_array().unwrap() {
            let example = example.as_object().unwrap();
            assert!(example.keys().all(|field| known.contains_key(field)), "{name}: {example:?}");
            let has = |field: &&Value| example.contains_key(field.as_str().unwrap());
            assert!(required.iter().all(has), "{name}: {example:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_docs_load_nothing_external() {
    let harness = Harness::with_item("concert").await;
    let page = harness.get("/docs").await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let style = harness.get("/docs.css").await;
    assert_eq!(style.header("content-type"), "text/css; charset=utf-8");
    for text in [&page.text, &style.text] {
        for foreign in ["http:", "https:", "src=", "<script", "@import", "url(", "style=\""] {
            assert!(!text.contains(foreign), "{foreign}");
        }
    }
    let size = page.text.len() + style.text.len();
    assert!(size < 96 * 1024, "{size} bytes");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_docs_list_every_route_and_every_code() {
    let harness = Harness::with_item("concert").await;
    let page = harness.get("/docs").await.text;
    for code in daegi_runtime::Code::ALL {
        assert!(page.contains(&format!("id=\"{code}\"")), "{code}");
    }
    for (path, _) in operations(&daegi_api::openapi_document()) {
        assert!(page.contains(&path), "{path}");
    }
    for href in page.split("href=\"#").skip(1) {
        let target = href.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{target}\"")), "#{target} leads nowhere");
    }
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_passes_are_published() {
    let harness = Harness::with_item("concert").await;
    let keys = harness.get("/.well-known/jwks.json").await;
    assert_eq!(keys.header("cache-control"), "public, max-age=300");
    let key = &keys.json()["keys"][0];
    assert_eq!((&key["kty"], &key["crv"]), (&"OKP".into(), &"Ed25519".into()));
    assert!(key["d"].is_null(), "only the public half");
    harness.end().await;
}

#[tokio::test(start_paused = true)]
async fn internal_routes_are_not_public() {
    let harness = Harness::with_item("concert").await;
    let document = daegi_api::openapi_document();
    for (path, method) in operations(&document) {
        let tag = &document["paths"][&path][method.to_lowercase()]["tags"][0];
        let is_internal = path.starts_with("/internal/") || path.starts_with("/gate/");
        assert_eq!(*tag == "internal", is_internal, "{path}");
    }
    harness.end().await;
}
