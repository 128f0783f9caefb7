//! Items: create, read, replace and remove; pause, resume and reset of a line.

use daegi_domain::{Policy, rfc3339};
use serde_json::{Value, json};

use super::harness::{AdminHarness, ITEM, QUOTA};
use crate::harness::{START, item, user};

const ITEMS: &str = "/waiting-item";

fn body(name: &str) -> String {
    json!({"itemName": name, "remainCount": 5, "waitingQueueEnabled": true}).to_string()
}

#[tokio::test]
async fn an_item_is_returned_completely() {
    let admin = AdminHarness::open().await;
    let wanted = json!({
        "itemId": "concert", "itemName": "A concert", "remainCount": 100,
        "waitingQueueEnabled": true, "paused": false, "version": 0, "revision": 1,
        "createdAt": rfc3339(START), "updatedAt": rfc3339(START), "lineState": "OPEN",
        "openedAt": null, "draw": null, "policy": Policy::default(),
    });
    assert_eq!(admin.ok(200, "GET", ITEM, "").await, wanted);
    assert_eq!(admin.ok(200, "GET", ITEMS, "").await, json!({"items": [wanted]}));
    admin.refused(404, "ITEM_NOT_FOUND", ("GET", "/waiting-item/ghost", "")).await;
}

#[tokio::test]
async fn the_line_state_follows_the_quota() {
    let admin = AdminHarness::open().await;
    admin.ok(200, "PUT", QUOTA, r#"{"tokenCountToMove":0}"#).await;
    assert_eq!(admin.ok(200, "GET", ITEM, "").await["lineState"], "PAUSED");
    let items = admin.ok(200, "GET", ITEMS, "").await;
    assert_eq!(items["items"][0]["lineState"], "PAUSED");
}

#[tokio::test]
async fn an_item_is_created_with_its_opening_or_not_at_all() {
    let admin = AdminHarness::open().await;
    let new = |opens_at: u64| {
        let opening = json!({"opensAt": rfc3339(opens_at), "order": "draw"});
        json!({"itemId": "match", "itemName": "The match", "remainCount": 3, "policy": {"opening": opening}})
            .to_string()
    };
    admin.refused(400, "INVALID_REQUEST", ("POST", ITEMS, &new(START))).await;
    admin.refused(404, "ITEM_NOT_FOUND", ("GET", "/waiting-item/match", "")).await;
    let created = admin.ok(201, "POST", ITEMS, &new(START + 60_000)).await;
    assert_eq!(
        (&created["lineState"], &created["draw"]["state"]),
        (&json!("LOBBY"), &json!("COMMITTED"))
    );
    let secret = created.to_string();
    assert!(!secret.contains("reveal"), "{secret}");
}

#[tokio::test]
async fn a_planned_line_is_opened_by_an_operator_once() {
    let admin = AdminHarness::open().await;
    let open = ("POST", "/waiting-item/concert/open", "");
    admin.refused(409, "CONFLICT", open).await;
    let policy = "/waiting-item/concert/policy";
    let planned = json!({"opening": {"opensAt": null, "order": "draw"}}).to_string();
    let lobby = admin.ok(200, "PATCH", policy, &planned).await;
    let commitment = lobby["draw"]["commitment"].clone();
    let opened = admin.ok(200, open.0, open.1, open.2).await;
    assert_eq!(opened["draw"]["commitment"], commitment, "only the time changed");
    assert_eq!(opened["policy"]["opening"]["opensAt"], rfc3339(START + 1));
    let put = json!({"itemName": "A", "remainCount": 1, "waitingQueueEnabled": true,
        "policy": {"opening": {"order": "arrival"}}});
    admin.refused(409, "CONFLICT", ("PUT", "/waiting-item/concert", &put.to_string())).await;
}

#[tokio::test]
async fn lanes_of_an_item_are_not_changed_by_put() {
    let admin = AdminHarness::open().await;
    let put = |lanes: Value| {
        let policy = json!({ "lanes": lanes });
        let item = json!({"itemName": "A", "remainCount": 1, "waitingQueueEnabled": true});
        let mut item = item.as_object().unwrap().clone();
        item.insert("policy".into(), policy);
        Value::Object(item).to_string()
    };
    let members = json!([{"name": "members", "weight": 20, "first": false}]);
    let (with, without) = (put(members.clone()), put(json!([])));
    let created = admin.ok(201, "PUT", "/waiting-item/match", &with).await;
    assert_eq!(created["policy"]["lanes"], members);
    for same in [&with, &without] {
        let kept = admin.ok(200, "PUT", "/waiting-item/match", same).await;
        assert_eq!(kept["policy"]["lanes"], members);
    }
    let other = put(json!([{"name": "members", "weight": 30}]));
    for id in ["match", "concert"] {
        let path = format!("/waiting-item/{id}");
        let detail = admin.refused(409, "CONFLICT", ("PUT", &path, &other)).await;
        assert!(detail.contains("PATCH"), "{detail}");
    }
}

#[tokio::test]
async fn an_item_is_created_once() {
    let admin = AdminHarness::open().await;
    let new =
        r#"{"itemId":"match","itemName":"The match","remainCount":3,"policy":{"maxActive":9}}"#;
    let created = admin.ok(201, "POST", ITEMS, new).await;
    assert_eq!(created["waitingQueueEnabled"], true);
    assert_eq!(created["policy"]["maxActive"], 9);
    let detail = admin.refused(409, "CONFLICT", ("POST", ITEMS, new)).await;
    assert!(detail.contains("match"), "{detail}");
    assert_eq!(admin.ok(200, "GET", "/waiting-item/match", "").await, created);
}

#[tokio::test]
async fn a_removed_item_may_be_created_again() {
    let admin = AdminHarness::open().await;
    assert_eq!(admin.ok(204, "DELETE", ITEM, "").await, Value::Null);
    admin.refused(404, "ITEM_NOT_FOUND", ("DELETE", ITEM, "")).await;
    admin.refused(404, "ITEM_NOT_FOUND", ("GET", ITEM, "")).await;
    let new = r#"{"itemId":"concert","itemName":"Again","remainCount":3}"#;
    assert_eq!(admin.ok(201, "POST", ITEMS, new).await["itemName"], "Again");
    admin.refused(409, "CONFLICT", ("POST", ITEMS, new)).await;
}

#[tokio::test]
async fn a_put_replaces_the_whole_item_or_creates_it() {
    let admin = AdminHarness::open().await;
    admin.ok(200, "PATCH", "/waiting-item/concert/policy", r#"{"maxActive":9}"#).await;
    let replaced = admin.ok(200, "PUT", ITEM, &body("New")).await;
    assert_eq!((&replaced["itemName"], &replaced["remainCount"]), (&json!("New"), &json!(5)));
    assert!(replaced["policy"]["maxActive"].is_null(), "the policy is replaced, too");
    let created = admin.ok(201, "PUT", "/waiting-item/match", &body("The match")).await;
    assert_eq!(created["itemId"], "match");
}

#[tokio::test]
async fn a_manual_change_creates_or_changes_and_keeps_the_policy() {
    let admin = AdminHarness::open().await;
    admin.ok(200, "PATCH", "/waiting-item/concert/policy", r#"{"maxActive":9}"#).await;
    let changed = admin.ok(200, "POST", "/waiting-item/concert/manually", &body("New")).await;
    assert_eq!((&changed["itemName"], &changed["policy"]["maxActive"]), (&json!("New"), &json!(9)));
    let created = admin.ok(200, "POST", "/waiting-item/match/manually", &body("The match")).await;
    assert_eq!((&created["itemId"], &created["version"]), (&json!("match"), &json!(0)));
    let off = r#"{"itemName":"Off","remainCount":0,"waitingQueueEnabled":false}"#;
    let off = admin.ok(200, "POST", "/waiting-item/match/manually", off).await;
    assert_eq!(off["lineState"], "DISABLED");
}

#[tokio::test]
async fn invalid_items_are_rejected() {
    let admin = AdminHarness::open().await;
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
            admin.refused(400, "INVALID_REQUEST", (method, path, bad)).await;
        }
    }
    for bad in [
        r#"{"itemName":"A","remainCount":1}"#,
        r#"{"itemId":"a b","itemName":"A","remainCount":1}"#,
        r#"{"itemId":"~daegi.x","itemName":"A","remainCount":1}"#,
        r#"{"itemId":"a","itemName":"A","remainCount":1,"policy":{"maxActive":0}}"#,
        r#"{"itemId":"a","itemName":"A","remainCount":1,"policy":{"maxActve":1}}"#,
    ] {
        admin.refused(400, "INVALID_REQUEST", ("POST", ITEMS, bad)).await;
    }
    let update = r#"{"itemName":"A","remainCount":1,"waitingQueueEnabled":true,"policy":{}}"#;
    let manually = ("POST", "/waiting-item/concert/manually", update);
    admin.refused(400, "INVALID_REQUEST", manually).await;
    assert_eq!(admin.ok(200, "GET", ITEM, "").await["revision"], 1, "nothing was changed");
}

#[tokio::test]
async fn invalid_ids_in_paths_are_rejected_everywhere() {
    let admin = AdminHarness::open().await;
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
            admin.refused(400, "INVALID_REQUEST", (method, &path, &body)).await;
        }
    }
}

#[tokio::test]
async fn a_line_is_paused_resumed_and_reset() {
    let admin = AdminHarness::open().await;
    let settings = admin.store.settings().await.unwrap();
    admin.store.join(&item("concert"), &[user("kim")], &settings, START).await.unwrap();
    let paused = admin.ok(200, "POST", "/waiting-item/concert/pause", "").await;
    assert_eq!((&paused["paused"], &paused["lineState"]), (&json!(true), &json!("PAUSED")));
    let resumed = admin.ok(200, "POST", "/waiting-item/concert/resume", "").await;
    assert_eq!((&resumed["paused"], &resumed["lineState"]), (&json!(false), &json!("OPEN")));
    let reset = admin.ok(200, "POST", "/waiting-item/concert/reset", "").await;
    assert_eq!(reset["itemId"], "concert");
    let counts = admin.store.counts(&[item("concert")]).await.unwrap();
    assert_eq!(counts[0].waiting, 0);
    for lever in ["pause", "resume", "reset"] {
        let path = format!("/waiting-item/ghost/{lever}");
        admin.refused(404, "ITEM_NOT_FOUND", ("POST", &path, "")).await;
    }
}
