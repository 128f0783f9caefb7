//! Changing some rules and keeping the others.

use daegi_domain::Policy;
use serde_json::json;

use super::desk::{Desk, ITEM};
use crate::room::item;

const POLICY: &str = "/waiting-item/concert/policy";

#[tokio::test]
async fn a_patch_changes_what_it_names_and_null_goes_back_to_the_default() {
    let desk = Desk::open().await;
    let rules = r#"{"maxActive":5,"passTtlSeconds":60,"entryUrl":"https://shop.example/{pass}"}"#;
    let policy = desk.ok(200, "PATCH", POLICY, rules).await["policy"].clone();
    assert_eq!(policy["maxActive"], 5);
    assert_eq!(policy["graceSeconds"], 60, "not named, not changed");
    let rules = r#"{"maxActive":null,"tokensPerTick":3}"#;
    let policy = desk.ok(200, "PATCH", POLICY, rules).await["policy"].clone();
    assert!(policy["maxActive"].is_null());
    assert_eq!((&policy["tokensPerTick"], &policy["passTtlSeconds"]), (&json!(3), &json!(60)));
    let merge = "application/merge-patch+json";
    let reply = desk.call_as("PATCH", POLICY, merge, r#"{"mode":"auto"}"#).await;
    assert_eq!((reply.status.as_u16(), &reply.body["policy"]["mode"]), (200, &json!("auto")));
}

#[tokio::test]
async fn a_patch_of_the_page_keeps_what_it_does_not_name() {
    let desk = Desk::open().await;
    let page = r##"{"page":{"title":"Friday","message":"Soon.","accent":"#0a3d91"}}"##;
    desk.ok(200, "PATCH", POLICY, page).await;
    let changes = r#"{"page":{"message":"Doors open at eight.","accent":null}}"#;
    let page = desk.ok(200, "PATCH", POLICY, changes).await["policy"]["page"].clone();
    assert_eq!(page["title"], "Friday");
    assert_eq!(page["message"], "Doors open at eight.");
    assert!(page["accent"].is_null(), "{page}");
    let policy = desk.ok(200, "PATCH", POLICY, r#"{"page":null}"#).await["policy"].clone();
    assert!(policy["page"]["title"].is_null(), "{policy}");
}

#[tokio::test]
async fn a_policy_that_makes_no_sense_is_refused_with_the_reason() {
    let desk = Desk::open().await;
    for (bad, reason) in [
        (r#"{"mode":"auto","tokensPerTick":0}"#, "contradicts"),
        (r#"{"maxActive":0}"#, "maxActive is 0"),
        (r#"{"maxActive":-1}"#, "policy: "),
        (r#"{"maxActive":"many"}"#, "policy: "),
        (r#"{"tokensPerTick":1000001}"#, "tokensPerTick"),
        (r#"{"passTtlSeconds":0}"#, "passTtlSeconds"),
        (r#"{"passTtlSeconds":1.5}"#, "policy: "),
        (r#"{"graceSeconds":3}"#, "graceSeconds"),
        (r#"{"mode":"sometimes"}"#, "sometimes"),
        (r#"{"entryUrl":"javascript:alert(1)"}"#, "entryUrl"),
        (r#"{"maxActve":1}"#, "maxActve"),
        (r#"{"maxActve":null}"#, "maxActve"),
        ("[]", "does not fit"),
        ("null", "does not fit"),
        ("{", "not JSON"),
        ("", "empty"),
    ] {
        let detail = desk.refused(400, "INVALID_REQUEST", ("PATCH", POLICY, bad)).await;
        assert!(detail.contains(reason), "{bad}: {detail}");
    }
    let stored = desk.store.item(&item("concert")).await.unwrap().unwrap();
    assert_eq!(stored.policy, Policy::default());
}

#[tokio::test]
async fn rules_that_contradict_stored_ones_are_refused_too() {
    let desk = Desk::open().await;
    desk.ok(200, "PATCH", POLICY, r#"{"mode":"auto"}"#).await;
    let zero = ("PATCH", POLICY, r#"{"tokensPerTick":0}"#);
    desk.refused(400, "INVALID_REQUEST", zero).await;
}

#[tokio::test]
async fn patches_at_the_same_time_all_count() {
    let desk = Desk::open().await;
    let one = desk.ok(200, "PATCH", POLICY, r#"{"maxActive":5}"#);
    let two = desk.ok(200, "PATCH", POLICY, r#"{"graceSeconds":30}"#);
    let three = desk.ok(200, "PATCH", POLICY, r#"{"passTtlSeconds":60}"#);
    tokio::join!(one, two, three);
    let policy = desk.ok(200, "GET", ITEM, "").await["policy"].clone();
    assert_eq!(policy["maxActive"], 5);
    assert_eq!(policy["graceSeconds"], 30);
    assert_eq!(policy["passTtlSeconds"], 60);
}

#[tokio::test]
async fn an_unknown_item_has_no_policy() {
    let desk = Desk::open().await;
    let ghost = ("PATCH", "/waiting-item/ghost/policy", "{}");
    desk.refused(404, "ITEM_NOT_FOUND", ghost).await;
}
