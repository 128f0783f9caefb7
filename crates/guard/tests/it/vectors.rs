//! What `sdk/vectors` says, this guard does.

#[path = "../../examples/vectors/make.rs"]
mod make;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::Request;
use axum::http::request::Parts;
use daegi_guard::{Admission, Clock, Entry, Guard, ItemId, Refusal, Setup, WhenAway};
use serde_json::{Value, json};

use crate::daegi::Daegi;

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
fn the_committed_vectors_are_those_that_are_made() {
    let how = "sdk/vectors/guard.json is out of date: cargo run -p daegi-guard --example vectors";
    assert!(committed() == make::vectors(), "{how}");
}

#[tokio::test]
async fn every_story_ends_as_it_is_told() {
    let vectors = committed();
    for story in list(&vectors, "stories") {
        live_through(&vectors["keySets"], &story).await;
    }
}

async fn live_through(key_sets: &Value, story: &Value) {
    let daegi = Daegi::start().await;
    let now = Arc::new(AtomicU64::new(0));
    let guard = Guard::new(setup(&story["setup"], &daegi, Arc::clone(&now))).unwrap();
    for step in story["steps"].as_array().unwrap() {
        now.store(step["now"].as_u64().unwrap() * 1000, Ordering::SeqCst);
        daegi.word().keys = key_sets.get(step["keys"].as_str().unwrap()).cloned();
        daegi.word().verdict = Some(step["verdict"].clone()).filter(Value::is_object);
        let item = ItemId::parse(step["item"].as_str().unwrap()).unwrap();
        let said = guard.check(&item, step["pass"].as_str().unwrap()).await;
        let (name, word) = (&story["name"], daegi.word());
        assert_eq!(told(said), step["expect"], "{name}: {step}");
        assert_eq!(word.keys_asked, step["keysAsked"], "{name}: {step}");
        assert_eq!(word.verdicts_asked, step["verdictsAsked"], "{name}: {step}");
    }
}

fn setup(said: &Value, daegi: &Daegi, now: Arc<AtomicU64>) -> Setup {
    let open = said["whenAway"] == "letIn";
    Setup {
        internal: Some(daegi.url.clone()),
        online: said["online"] == true,
        when_away: if open { WhenAway::LetIn } else { WhenAway::Refuse },
        clock_skew: seconds(&said["clockSkewSeconds"]),
        refresh: seconds(&said["refreshSeconds"]),
        pause: seconds(&said["pauseSeconds"]),
        clock: Clock::new(move || now.load(Ordering::SeqCst)),
        ..Setup::of(&daegi.url)
    }
}

fn told(said: Result<Entry, Refusal>) -> Value {
    match said {
        Ok(entry) => json!({ "entry": {
            "userId": entry.user, "itemId": entry.item, "passId": entry.pass_id,
            "number": entry.number, "expiresAt": entry.expires_at, "genuine": entry.genuine,
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
fn a_pass_is_found_where_it_may_be() {
    for vector in list(&committed(), "carriers") {
        let (parts, item) = request(&vector);
        assert_eq!(daegi_guard::find_pass(&parts, &item), vector["pass"], "{vector}");
    }
}

#[tokio::test]
async fn a_link_neither_replaces_nor_hides_a_good_cookie() {
    let vectors = committed();
    for vector in list(&vectors, "requests") {
        let daegi = Daegi::start().await;
        daegi.word().keys = vectors["keySets"].get(vector["keys"].as_str().unwrap()).cloned();
        let now = vector["now"].as_u64().unwrap() * 1000;
        let clock = Clock::new(move || now);
        let guard = Guard::new(Setup { clock, ..Setup::of(&daegi.url) }).unwrap();
        let (parts, item) = request(&vector);
        let admitted = match guard.admit(&parts, &item).await {
            Ok(Admission { entry, keep }) => json!({
                "userId": entry.user, "expiresAt": entry.expires_at, "keeps": keep,
            }),
            Err(refusal) => json!({ "refused": refusal.code() }),
        };
        assert_eq!(admitted, vector["expect"], "{}", vector["name"]);
    }
}

#[tokio::test]
async fn a_cookie_that_was_revoked_gives_way_to_a_good_pass_in_the_address() {
    let vectors = committed();
    let list = list(&vectors, "requests");
    let vector = list.iter().find(|vector| vector["name"] == "another person's pass").unwrap();
    let daegi = Daegi::start().await;
    daegi.word().keys = vectors["keySets"].get("first").cloned();
    daegi.word().verdict = Some(json!({ "valid": false, "reason": "COMPLETED" }));
    let now = vector["now"].as_u64().unwrap() * 1000;
    let setup = Setup {
        internal: Some(daegi.url.clone()),
        online: true,
        clock: Clock::new(move || now),
        ..Setup::of(&daegi.url)
    };
    let (parts, item) = request(vector);
    let refused = Guard::new(setup).unwrap().admit(&parts, &item).await.unwrap_err();
    assert_eq!(
        (refused.code(), daegi.word().verdicts_asked),
        ("PASS_REVOKED", 2),
        "both were asked about"
    );
}
