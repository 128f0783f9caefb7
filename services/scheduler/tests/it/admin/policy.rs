//! Changes of some rules that keep the others.

use daegi_domain::Policy;
use serde_json::json;

use super::harness::{AdminHarness, ITEM};
use crate::harness::item;

const POLICY: &str = "/waiting-item/concert/policy";

#[tokio::test]
async fn a_patch_changes_named_fields_and_null_restores_the_default() {
    let admin = AdminHarness::open().await;
    let rules = r#"{"maxActive":5,"passTtlSeconds":60,"entryUrl":"https://shop.example/{pass}"}"#;
    let policy = admin.ok(200, "PATCH", POLICY, rules).await["policy"].clone();
    assert_eq!(policy["maxActive"], 5);
    assert_eq!(policy["graceSeconds"], 60, "not named, not changed");
    let rules = r#"{"maxActive":null,"tokensPerTick":3}"#;
    let policy = admin.ok(200, "PATCH", POLICY, rules).await["policy"].clone();
    assert!(policy["maxActive"].is_null());
    assert_eq!((&policy["tokensPerTick"], &policy["passTtlSeconds"]), (&json!(3), &json!(60)));
    let merge = "application/merge-patch+json";
    let reply = admin.call_as("PATCH", POLICY, merge, r#"{"mode":"auto"}"#).await;
    assert_eq!((reply.status.as_u16(), &reply.body["policy"]["mode"]), (200, &json!("auto")));
}

#[tokio::test]
async fn a_patch_of_the_page_keeps_fields_it_does_not_name() {
    let admin = AdminHarness::open().await;
    let page = r##"{"page":{"title":"Friday","message":"Soon.","accent":"#0a3d91"}}"##;
    admin.ok(200, "PATCH", POLICY, page).await;
    let changes = r#"{"page":{"message":"Doors open at eight.","accent":null}}"#;
    let page = admin.ok(200, "PATCH", POLICY, changes).await["policy"]["page"].clone();
    assert_eq!(page["title"], "Friday");
    assert_eq!(page["message"], "Doors open at eight.");
    assert!(page["accent"].is_null(), "{page}");
    let policy = admin.ok(200, "PATCH", POLICY, r#"{"page":null}"#).await["policy"].clone();
    assert!(policy["page"]["title"].is_null(), "{policy}");
}

#[tokio::test]
async fn a_patch_replaces_all_lanes_and_null_removes_them() {
    let admin = AdminHarness::open().await;
    let lanes = r#"{"lanes":[{"name":"vip","first":true},{"name":"members","weight":30}]}"#;
    let policy = admin.ok(200, "PATCH", POLICY, lanes).await["policy"].clone();
    let (vip, members) = (
        json!({"name": "vip", "weight": 0, "first": true}),
        json!({"name": "members", "weight": 30, "first": false}),
    );
    assert_eq!(policy["lanes"], json!([vip, members]));
    let policy = admin.ok(200, "PATCH", POLICY, r#"{"maxActive":5}"#).await["policy"].clone();
    assert_eq!(policy["lanes"], json!([vip, members]), "not named, not changed");
    let lanes = r#"{"lanes":[{"name":"members","weight":20}]}"#;
    let policy = admin.ok(200, "PATCH", POLICY, lanes).await["policy"].clone();
    assert_eq!(policy["lanes"], json!([{"name": "members", "weight": 20, "first": false}]));
    let policy = admin.ok(200, "PATCH", POLICY, r#"{"lanes":null}"#).await["policy"].clone();
    assert_eq!(policy["lanes"], json!([]));
}

#[tokio::test]
async fn an_invalid_policy_is_rejected_with_the_reason() {
    let admin = AdminHarness::open().await;
    let nine: Vec<_> = (1..=9).map(|n| json!({"name": format!("l{n}"), "weight": 1})).collect();
    let nine = json!({ "lanes": nine }).to_string();
    for (bad, reason) in [
        (&*nine, "9 lanes"),
        (r#"{"lanes":[{"name":"a","weight":0}]}"#, "weight 0"),
        (r#"{"lanes":[{"name":"a","weight":1},{"name":"a","first":true}]}"#, "two lanes"),
        (r#"{"lanes":[{"name":"a","weight":60},{"name":"b","weight":40}]}"#, "sum to 100"),
        (r#"{"lanes":[{"name":"standard","weight":1}]}"#, "not allowed"),
        (r#"{"lanes":[{"weight":1}]}"#, "name"),
        (r#"{"lanes":{"a":1}}"#, "policy: "),
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
        let detail = admin.refused(400, "INVALID_REQUEST", ("PATCH", POLICY, bad)).await;
        assert!(detail.contains(reason), "{bad}: {detail}");
    }
    let stored = admin.store.item(&item("concert")).await.unwrap().unwrap();
    assert_eq!(stored.policy, Policy::default());
}

#[tokio::test]
async fn rules_that_contradict_stored_ones_are_rejected() {
    let admin = AdminHarness::open().await;
    admin.ok(200, "PATCH", POLICY, r#"{"mode":"auto"}"#).await;
    let zero = ("PATCH", POLICY, r#"{"tokensPerTick":0}"#);
    admin.refused(400, "INVALID_REQUEST", zero).await;
}

#[tokio::test]
async fn concurrent_patches_all_apply() {
    let admin = AdminHarness::open().await;
    let one = admin.ok(200, "PATCH", POLICY, r#"{"maxActive":5}"#);
    let two = admin.ok(200, "PATCH", POLICY, r#"{"graceSeconds":30}"#);
    let three = admin.ok(200, "PATCH", POLICY, r#"{"passTtlSeconds":60}"#);
    tokio::join!(one, two, three);
    let policy = admin.ok(200, "GET", ITEM, "").await["policy"].clone();
    assert_eq!(policy["maxActive"], 5);
    assert_eq!(policy["graceSeconds"], 30);
    assert_eq!(policy["passTtlSeconds"], 60);
}

#[tokio::test]
async fn an_unknown_item_has_no_policy() {
    let admin = AdminHarness::open().await;
    let ghost = ("PATCH", "/waiting-item/ghost/policy", "{}");
    admin.refused(404, "ITEM_NOT_FOUND", ghost).await;
}
