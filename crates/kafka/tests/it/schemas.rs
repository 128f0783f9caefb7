//! The committed schemas match the types.

use std::fs;
use std::path::PathBuf;

use daegi_domain::Topic;
use daegi_kafka::schema;
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

#[test]
fn the_committed_schemas_match_the_types() {
    for schema in schema::all() {
        let committed = fs::read_to_string(folder().join(&schema.file)).unwrap_or_default();
        // Compared as JSON, because the order of keys depends on features that other crates enable.
        let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
        assert!(
            parsed(&committed) == parsed(&schema.text),
            "schemas/{} is out of date: cargo run -p daegi-kafka --example schemas",
            schema.file
        );
    }
}

#[test]
fn every_event_is_in_the_asyncapi_document_with_its_schema() {
    let document = fs::read_to_string(folder().join("asyncapi.yaml")).unwrap();
    for (topic, schema) in Topic::ALL.into_iter().zip(schema::all()) {
        assert!(document.contains(&format!("address: {topic}\n")), "{topic}");
        assert!(document.contains(&format!("$ref: ./{}\n", schema.file)), "{}", schema.file);
    }
}

#[test]
fn unknown_fields_are_accepted() {
    for schema in schema::all() {
        let schema: Value = serde_json::from_str(&schema.text).unwrap();
        assert_eq!(schema.get("additionalProperties"), None);
    }
}
