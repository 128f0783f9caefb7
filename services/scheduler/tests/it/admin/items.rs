//! Items: create, read, replace, remove, and the levers of a line.

use daegi_domain::{Policy, rfc3339};
use serde_json::{Value, json};

use super::desk::{Desk, ITEM, QUOTA};
use crate::room::{START, item, user};

const ITEMS: &str = "/waiting-item";

fn body(name: &str) -> String {
    json!({"itemName": name, "remainCount": 5, "waitingQueueEnabled": true}).to_string()
}

#[tokio::test]
async fn an_item_is_shown_whole() {
    let desk = Desk::open().await;
    let wanted = json!({
        "itemId": "concert", "itemName": "A concert", "remainCount": 100,
        "waitingQueueEnabled": true, "paused": false, "version": 0, "revision": 1,
        "createdAt": rfc3339(START), "updatedAt": rfc3339(START), "lineState": "OPEN", "policy": Policy::default(),
    });
    assert_eq!(desk.ok(200, "GET", ITEM, "").await, wanted);
    assert_eq!(desk.ok(200, "GET", ITEMS, "").await, json!({"items": [wanted]}));
    desk.refused(404, "ITEM_NOT_FOUND", ("GET", "/waiting-item/ghost", "")).await;
}

#[tokio::test]
async fn the_line_state_follows_the_quota() {
    let desk = Desk::open().await;
    desk.ok(200, "PUT", QUOTA, r#"{"tokenCountToMove":0}"#).await;
    assert_eq!(desk.ok(200, "GET", ITEM, "").await["lineState"], "PAUSED");
    let items = desk.ok(200, "GET", ITEMS, "").await;
    assert_eq!(items["items"][0]["lineState"], "PAUSED");
}

#[tokio::test]
async fn an_item_is_created_once() {
    let desk = Desk::open().await;
    let new =
        r#"{"itemId":"match","itemName":"The match","remainCount":3,"policy":{"maxActive":9}}"#;
    let created = desk.ok(201, "POST", ITEMS, new).await;
    assert_eq!(created["waitingQueueEnabled"], true);
    assert_eq!(created["policy"]["maxActive"], 9);
    let detail = desk.refused(409, "CONFLICT", ("POST", ITEMS, new)).await;
    assert!(detail.contains("match"), "{detail}");
    assert_eq!(desk.ok(200, "GET", "/waiting-item/match", "").await, created);
}

#[tokio::test]
async fn a_removed_item_is_gone_and_may_be_created_again() {
    let desk = Desk::open().await;
    assert_eq!(desk.ok(204, "DELETE", ITEM, "").await, Value::Null);
    desk.refused(404, "ITEM_NOT_FOUND", ("DELETE", ITEM, "")).await;
    desk.refused(404, "ITEM_NOT_FOUND", ("GET", ITEM, "")).await;
    let new = r#"{"itemId":"concert","itemName":"Again","remainCount":3}"#;
    assert_eq!(desk.ok(201, "POST", ITEMS, new).await["itemName"], "Again");
    desk.refused(409, "CONFLICT", ("POST", ITEMS, new)).await;
}

#[tokio::test]
async fn a_put_replaces_the_whole_item_or_creates_it() {
    let desk = Desk::open().await;
    desk.ok(200, "PATCH", "/waiting-item/concert/policy", r#"{"maxActive":9}"#).await;
    let replaced = desk.ok(200, "PUT", ITEM, &body("New")).await;
    assert_eq!((&replaced["itemName"], &replaced["remainCount"]), (&json!("New"), &json!(5)));
    assert!(replaced["policy"]["maxActive"].is_null(), "the policy is replaced, too");
    let created = desk.ok(201, "PUT", "/waiting-item/match", &body("The match")).await;
    assert_eq!(created["itemId"], "match");
}

#[tokio::test]
async fn a_change_by_hand_creates_or_changes_and_keeps_the_policy() {
    let desk = Desk::open().await;
    desk.ok(200, "PATCH", "/waiting-item/concert/policy", r#"{"maxActive":9}"#).await;
    let changed = desk.ok(200, "POST", "/waiting-item/concert/manually", &body("New")).await;
    assert_eq!((&changed["itemName"], &changed["policy"]["maxActive"]), (&json!("New"), &json!(9)));
    let created = desk.ok(200, "POST", "/waiting-item/match/manually", &body("The match")).await;
    assert_eq!((&created["itemId"], &created["version"]), (&json!("match"), &json!(0)));
    let off = r#"{"itemName":"Off","remainCount":0,"waitingQueueEnabled":false}"#;
    let off = desk.ok(200, "POST", "/waiting-item/match/manually", off).await;
    assert_eq!(off["lineState"], "DISABLED");
}

#[tokio::test]
async fn bad_items_are_refused() {
    let desk = Desk::open().await;
    let long = "x".repeat(201);
    for (method, path) in [("PUT", ITEM), ("POST", "/waiting-item/concert/manually")] {
        for bad in [
            "",
            "not json",
            "[]",
            "{}",
            r#"{"itemName":"A","remainCount":1}"#,
            r#"{"itemName":"A","remainCount":-1,"waitingQueueEnabled":true}"#,
            r#"{"itemName":"A","remainCount":4294967296,"waitingQueueEnabled":true}"#,
            r#"{"itemName":"A","remainCount":1.5,"waitingQueueEnabled":true}"#,
            r#"{"itemName":"A","remainCount":1,"waitingQueueEnabled":"yes"}"#,
            r#"{"itemName":"","remainCount":1,"waitingQueueEnabled":true}"#,
            r#"{"itemName":"a\u0007b","remainCount":1,"waitingQueueEnabled":true}"#,
            r#"{"itemName":"A","remainCount":1,"waitingQueueEnabled":true,"colour":"red"}"#,
            &body(&long),
        ] {
            desk.refused(400, "INVALID_REQUEST", (method, path, bad)).await;
        }
    }
    for bad in [
        r#"{"itemName":"A","remainCount":1}"#,
        r#"{"itemId":"a b","itemName":"A","remainCount":1}"#,
        r#"{"itemId":"~daegi.x","itemName":"A","remainCount":1}"#,
        r#"{"itemId":"a","itemName":"A","remainCount":1,"policy":{"maxActive":0}}"#,
        r#"{"itemId":"a","itemName":"A","remainCount":1,"policy":{"maxActve":1}}"#,
    ] {
        desk.refused(400, "INVALID_REQUEST", ("POST", ITEMS, bad)).await;
    }
    let by_hand = r#"{"itemName":"A","remainCount":1,"waitingQueueEnabled":true,"policy":{}}"#;
    let manually = ("POST", "/waiting-item/concert/manually", by_hand);
    desk.refused(400, "INVALID_REQUEST", manually).await;
    assert_eq!(desk.ok(200, "GET", ITEM, "").await["revision"], 1, "nothing was changed");
}

#[tokio::test]
async fn bad_ids_in_paths_are_refused_everywhere() {
    let desk = Desk::open().await;
    for id in ["a%20b", "~daegi.warm-up", "a%2Fb", "%FF", &"x".repeat(65)] {
        for (method, call, body) in [
            ("GET", "", String::new()),
            ("PUT", "", body("A")),
            ("DELETE", "", String::new()),
            ("POST", "/manually", body("A")),
            ("PATCH", "/policy", "{}".into()),
            ("POST", "/pause", String::new()),
            ("POST", "/resume", String::new()),
            ("POST", "/reset", String::new()),
        ] {
            let path = format!("{ITEMS}/{id}{call}");
            desk.refused(400, "INVALID_REQUEST", (method, &path, &body)).await;
        }
    }
}

#[tokio::test]
async fn a_line_is_paused_resumed_and_reset() {
    let desk = Desk::open().await;
    let settings = desk.store.settings().await.unwrap();
    desk.store.join(&item("concert"), &[user("kim")], &settings, START).await.unwrap();
    let paused = desk.ok(200, "POST", "/waiting-item/concert/pause", "").await;
    assert_eq!((&paused["paused"], &paused["lineState"]), (&json!(true), &json!("PAUSED")));
    let resumed = desk.ok(200, "POST", "/waiting-item/concert/resume", "").await;
    assert_eq!((&resumed["paused"], &resumed["lineState"]), (&json!(false), &json!("OPEN")));
    let reset = desk.ok(200, "POST", "/waiting-item/concert/reset", "").await;
    assert_eq!(reset["itemId"], "concert");
    let counts = desk.store.counts(&[item("concert")]).await.unwrap();
    assert_eq!(counts[0].waiting, 0);
    for lever in ["pause", "resume", "reset"] {
        let path = format!("/waiting-item/ghost/{lever}");
        desk.refused(404, "ITEM_NOT_FOUND", ("POST", &path, "")).await;
    }
}
