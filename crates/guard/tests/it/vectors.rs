//! Runs the vectors of `sdk/vectors`.

#[path = "../../examples/vectors/generate.rs"]
mod generate;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::Request;
use axum::http::request::Parts;
use daegi_guard::{
    Authorization, Clock, Entry, Guard, GuardConfig, ItemId, OnUnavailable, Refusal,
};
use serde_json::{Value, json};

use crate::stub_daegi::StubDaegi;

fn committed() -> Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/vectors/guard.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn list(vectors: &Value, name: &str) -> Vec<Value> {
    vectors[name].as_array().unwrap().clone()
}

fn seconds(value: &Value) -> Duration {
    Duration::from_secs(value.as_u64().unwrap())
}

#[test]
fn the_committed_vectors_are_up_to_date() {
    let how = "sdk/vectors/guard.json is out of date: cargo run -p daegi-guard --example vectors";
    assert!(committed() == generate::vectors(), "{how}");
}

#[tokio::test]
async fn every_scenario_has_the_expected_outcome() {
    let vectors = committed();
    for scenario in list(&vectors, "scenarios") {
        run_scenario(&vectors["keySets"], &scenario).await;
    }
}

async fn run_scenario(key_sets: &Value, scenario: &Value) {
    let daegi = StubDaegi::start().await;
    let now = Arc::new(AtomicU64::new(0));
    let guard = Guard::new(config(&scenario["config"], &daegi, Arc::clone(&now))).unwrap();
    for step in scenario["steps"].as_array().unwrap() {
        now.store(step["now"].as_u64().unwrap() * 1000, Ordering::SeqCst);
        daegi.state().keys = key_sets.get(step["keys"].as_str().unwrap()).cloned();
        daegi.state().verdict = Some(step["verdict"].clone()).filter(Value::is_object);
        let item = ItemId::parse(step["item"].as_str().unwrap()).unwrap();
        let result = guard.check(&item, step["pass"].as_str().unwrap()).await;
        let (name, state) = (&scenario["name"], daegi.state());
        assert_eq!(outcome(result), step["expect"], "{name}: {step}");
        assert_eq!(state.key_fetches, step["keyFetches"], "{name}: {step}");
        assert_eq!(state.online_checks, step["onlineChecks"], "{name}: {step}");
    }
}

fn config(options: &Value, daegi: &StubDaegi, now: Arc<AtomicU64>) -> GuardConfig {
    let open = options["onUnavailable"] == "failOpen";
    GuardConfig {
        internal_url: Some(daegi.url.clone()),
        online: options["online"] == true,
        on_unavailable: if open { OnUnavailable::FailOpen } else { OnUnavailable::FailClosed },
        clock_skew: seconds(&options["clockSkewSeconds"]),
        key_ttl: seconds(&options["keyTtlSeconds"]),
        min_fetch_interval: seconds(&options["minFetchIntervalSeconds"]),
        clock: Clock::new(move || now.load(Ordering::SeqCst)),
        ..GuardConfig::new(&daegi.url)
    }
}

fn outcome(result: Result<Entry, Refusal>) -> Value {
    match result {
        Ok(entry) => json!({ "entry": {
            "userId": entry.user, "itemId": entry.item, "passId": entry.pass_id,
            "number": entry.number, "lane": entry.lane, "expiresAt": entry.expires_at, "signatureVerified": entry.signature_verified,
            "token": entry.token(),
        }}),
        Err(refusal) => json!({ "refused": refusal.code() }),
    }
}

/// The request of a vector, and its item.
fn request(vector: &Value) -> (Parts, ItemId) {
    let mut request = Request::builder().uri(vector["target"].as_str().unwrap());
    for (name, value) in vector["headers"].as_object().unwrap() {
        request = request.header(name, value.as_str().unwrap());
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    (parts, ItemId::parse(vector["item"].as_str().unwrap()).unwrap())
}

#[test]
fn a_pass_is_found_in_each_of_its_sources() {
    for vector in list(&committed(), "passSources") {
        let (parts, item) = request(&vector);
        assert_eq!(daegi_guard::find_pass(&parts, &item), vector["pass"], "{vector}");
    }
}

#[tokio::test]
async fn a_link_neither_replaces_nor_hides_a_valid_cookie() {
    let vectors = committed();
    for vector in list(&vectors, "requests") {
        let daegi = StubDaegi::start().await;
        daegi.state().keys = vectors["keySets"].get(vector["keys"].as_str().unwrap()).cloned();
        let now = vector["now"].as_u64().unwrap() * 1000;
        let clock = Clock::new(move || now);
        let guard = Guard::new(GuardConfig { clock, ..GuardConfig::new(&daegi.url) }).unwrap();
        let (parts, item) = request(&vector);
        let authorized = match guard.authorize(&parts, &item).await {
            Ok(Authorization { entry, keep }) => json!({
                "userId": entry.user, "expiresAt": entry.expires_at, "keeps": keep,
            }),
            Err(refusal) => json!({ "refused": refusal.code() }),
        };
        assert_eq!(authorized, vector["expect"], "{}", vector["name"]);
    }
}

#[tokio::test]
async fn a_revoked_cookie_is_replaced_by_a_valid_pass_in_the_url() {
    let vectors = committed();
    let list = list(&vectors, "requests");
    let vector = list.iter().find(|vector| vector["name"] == "another user's pass").unwrap();
    let daegi = StubDaegi::start().await;
    daegi.state().keys = vectors["keySets"].get("first").cloned();
    daegi.state().verdict = Some(json!({ "valid": false, "reason": "COMPLETED" }));
    let now = vector["now"].as_u64().unwrap() * 1000;
    let setup = GuardConfig {
        internal_url: Some(daegi.url.clone()),
        online: true,
        clock: Clock::new(move || now),
        ..GuardConfig::new(&daegi.url)
    };
    let (parts, item) = request(vector);
    let refused = Guard::new(setup).unwrap().authorize(&parts, &item).await.unwrap_err();
    assert_eq!(
        (refused.code(), daegi.state().online_checks),
        ("PASS_REVOKED", 2),
        "both were checked"
    );
}
