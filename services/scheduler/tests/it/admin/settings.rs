//! Quota, tick length and counts.

use serde_json::json;

use super::harness::{AdminHarness, QUOTA};
use crate::harness::{self, START, item, user};

const TICK: &str = "/waiting-queue/tick-ms";
const COUNT: &str = "/waiting-queue/token-count";

#[tokio::test]
async fn the_quota_is_read_and_set_by_body_or_query_or_both_that_agree() {
    let admin = AdminHarness::open().await;
    let quota = |n: u32| json!({ "tokenCountToMove": n });
    assert_eq!(admin.ok(200, "GET", QUOTA, "").await, quota(10));
    for (query, body, wanted) in [
        ("", r#"{"tokenCountToMove":7}"#, 7),
        ("?tokenCountToMove=8", "", 8),
        ("?tokenCountToMove=9", r#"{"tokenCountToMove":9}"#, 9),
        ("?tokenCountToMove=0", "", 0),
        ("", r#"{"tokenCountToMove":1000000}"#, 1_000_000),
    ] {
        let path = format!("{QUOTA}{query}");
        assert_eq!(admin.ok(200, "PUT", &path, body).await, quota(wanted));
        assert_eq!(admin.ok(200, "GET", QUOTA, "").await, quota(wanted));
        assert_eq!(admin.store.settings().await.unwrap().token_count_to_move, wanted);
    }
    assert_eq!(admin.store.settings().await.unwrap().tick_ms, 1000, "kept");
}

#[tokio::test]
async fn an_invalid_quota_is_rejected_and_changes_nothing() {
    let admin = AdminHarness::open().await;
    for (query, body) in [
        ("", ""),
        ("", "{}"),
        ("", r#"{"tokenCountToMove":-1}"#),
        ("", r#"{"tokenCountToMove":1.5}"#),
        ("", r#"{"tokenCountToMove":"5"}"#),
        ("", r#"{"tokenCountToMove":null}"#),
        ("", r#"{"tokenCountToMove":1000001}"#),
        ("", r#"{"tokenCountToMove":99999999999999999999}"#),
        ("", r#"{"tokenCountToMove":5,"tickMs":50}"#),
        ("", r#"{"tokenCountToMove":5"#),
        ("", "[5]x"),
        ("?tokenCountToMove=-1", ""),
        ("?tokenCountToMove=1.5", ""),
        ("?tokenCountToMove=%2B5", ""),
        ("?tokenCountToMove=", ""),
        ("?tokenCountToMove=1000001", ""),
        ("?tokenCountToMove=5&tokenCountToMove=6", ""),
        ("?tokenCountToMove=5", r#"{"tokenCountToMove":6}"#),
        ("?tokenCount=5", r#"{"tokenCountToMove":5}"#),
    ] {
        let path = format!("{QUOTA}{query}");
        admin.refused(400, "INVALID_REQUEST", ("PUT", &path, body)).await;
    }
    let reply = admin.call_as("PUT", QUOTA, "text/plain", r#"{"tokenCountToMove":5}"#).await;
    assert_eq!(
        (reply.status.as_u16(), &reply.body["code"]),
        (415, &json!("UNSUPPORTED_MEDIA_TYPE"))
    );
    assert_eq!(admin.store.settings().await.unwrap().token_count_to_move, 10);
}

#[tokio::test]
async fn the_tick_length_is_read_and_set_within_its_bounds() {
    let admin = AdminHarness::open().await;
    assert_eq!(admin.ok(200, "GET", TICK, "").await, json!({"tickMs": 1000}));
    for good in [50, 60_000, 250] {
        let body = json!({ "tickMs": good });
        assert_eq!(admin.ok(200, "PUT", TICK, &body.to_string()).await, body);
    }
    for bad in [
        "",
        "{}",
        r#"{"tickMs":49}"#,
        r#"{"tickMs":60001}"#,
        r#"{"tickMs":-1}"#,
        r#"{"tickMs":99.5}"#,
        r#"{"tickMs":100,"x":1}"#,
    ] {
        admin.refused(400, "INVALID_REQUEST", ("PUT", TICK, bad)).await;
    }
    let settings = admin.store.settings().await.unwrap();
    assert_eq!((settings.tick_ms, settings.token_count_to_move), (250, 10));
}

#[tokio::test]
async fn counts_cover_all_items_or_the_requested_ones() {
    let admin = AdminHarness::open().await;
    let settings = admin.store.settings().await.unwrap();
    harness::put(&*admin.store, "match", 5, None).await;
    for (id, users) in [("concert", vec!["a", "b", "c"]), ("match", vec!["a"])] {
        let users: Vec<_> = users.into_iter().map(user).collect();
        admin.store.join(&item(id), &users, &settings, START).await.unwrap();
    }
    let epoch = admin.store.begin_term(0).await.unwrap();
    admin.store.admit(epoch, &item("concert"), 1, 0, 100, START).await.unwrap();
    let concert = json!({"itemId": "concert", "waitingTokenCount": 2, "enteredTokenCount": 1});
    let game = json!({"itemId": "match", "waitingTokenCount": 1, "enteredTokenCount": 0});
    let all = json!({
        "items": [concert, game], "unknownItemIds": [], "totalWaiting": 3, "totalEntered": 1
    });
    assert_eq!(admin.ok(200, "GET", COUNT, "").await, all);
    let one = json!({
        "items": [game], "unknownItemIds": [], "totalWaiting": 1, "totalEntered": 0
    });
    assert_eq!(admin.ok(200, "GET", &format!("{COUNT}?itemId=match"), "").await, one);
    let both = format!("{COUNT}?itemId=match&itemId=concert&itemId=match");
    assert_eq!(admin.ok(200, "GET", &both, "").await["items"], json!([game, concert]));
}

#[tokio::test]
async fn counts_of_known_items_are_returned_and_unknown_items_are_listed() {
    let admin = AdminHarness::open().await;
    let path = format!("{COUNT}?itemId=ghost&itemId=concert&itemId=phantom&itemId=ghost");
    let counts = admin.ok(200, "GET", &path, "").await;
    assert_eq!(counts["items"].as_array().unwrap().len(), 1);
    assert_eq!(counts["items"][0]["itemId"], "concert");
    assert_eq!(counts["unknownItemIds"], json!(["ghost", "phantom"]));
}

#[tokio::test]
async fn misspelt_filters_of_counts_are_rejected() {
    let admin = AdminHarness::open().await;
    for bad in ["?itemId=", "?itemId=a%20b", "?itemId=~daegi.x", "?item=concert", "?itemId"] {
        let path = format!("{COUNT}{bad}");
        admin.refused(400, "INVALID_REQUEST", ("GET", &path, "")).await;
    }
}

#[tokio::test]
async fn declaring_a_data_loss_opens_the_reclaim_window_and_is_in_the_audit_log() {
    let admin = AdminHarness::open().await;
    let declared = admin.ok(200, "POST", "/recovery/declare-loss", "").await;
    let log = admin.ok(200, "GET", "/audit", "").await;
    let entry = &log["entries"][0];
    assert_eq!((&entry["action"], &entry["itemId"]), (&json!("declare data loss"), &json!(null)));
    assert_eq!(entry["to"], json!({"reclaimUntil": declared["reclaimUntil"]}));
    assert!(declared["reclaimUntil"].as_str() > declared["declaredAt"].as_str(), "{declared}");
}
