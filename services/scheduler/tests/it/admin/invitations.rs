//! Invitation codes: what a call makes, refuses and records.

use std::collections::HashSet;

use daegi_domain::{Invitation, Lane, TicketKeys, rfc3339};
use serde_json::{Value, json};

use super::harness::{AdminHarness, KEYS};
use crate::harness::{START, item};

const INVITATIONS: &str = "/waiting-item/concert/invitations";
const POLICY: &str = "/waiting-item/concert/policy";
const DAY_MS: u64 = 86_400_000;

/// An admin API with the lanes `vip` and `members`.
async fn admin_with_lanes() -> AdminHarness {
    let admin = AdminHarness::open().await;
    let lanes = r#"{"lanes":[{"name":"vip","first":true},{"name":"members","weight":30}]}"#;
    admin.ok(200, "PATCH", POLICY, lanes).await;
    admin
}

fn body(fields: &Value) -> String {
    let mut body = json!({"lane": "members", "expiresAt": rfc3339(START + DAY_MS)});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

fn codes(reply: &Value) -> Vec<String> {
    serde_json::from_value(reply["codes"].clone()).unwrap()
}

#[tokio::test]
async fn codes_are_distinct_and_valid_for_their_lane() {
    let admin = admin_with_lanes().await;
    let made =
        admin.ok(200, "POST", INVITATIONS, &body(&json!({"count": 50, "usesEach": 3}))).await;
    assert_eq!((&made["lane"], &made["usesEach"]), (&json!("members"), &json!(3)));
    assert_eq!(made["expiresAt"], rfc3339(START + DAY_MS));
    let (keys, mut ids) = (KEYS.parse::<TicketKeys>().unwrap(), HashSet::new());
    let stored = admin.store.item(&item("concert")).await.unwrap().unwrap();
    for code in codes(&made) {
        let found = keys.verify_invitation(&stored.id, &stored.policy.lanes, &code, START);
        let (lane, Invitation { id, uses, expires_at }) = found.unwrap();
        assert_eq!((lane, uses, expires_at), (Lane::numbered(2).unwrap(), 3, START + DAY_MS));
        ids.insert(id);
    }
    assert_eq!(ids.len(), 50);
    let again = admin.ok(200, "POST", INVITATIONS, &body(&json!({}))).await;
    assert_eq!((codes(&again).len(), &again["usesEach"]), (1, &json!(1)), "the defaults");
    assert!(!codes(&made).contains(&codes(&again)[0]), "another call makes other codes");
}

#[tokio::test]
async fn fractions_of_the_last_second_are_cut_off() {
    let admin = admin_with_lanes().await;
    let fraction = json!({"expiresAt": rfc3339(START + DAY_MS + 999)});
    let made = admin.ok(200, "POST", INVITATIONS, &body(&fraction)).await;
    assert_eq!(made["expiresAt"], rfc3339(START + DAY_MS));
}

#[tokio::test]
async fn the_largest_values_are_accepted() {
    let admin = admin_with_lanes().await;
    let last = rfc3339(START + Invitation::MAX_AHEAD_MS);
    let fields = json!({"count": 10_000, "usesEach": 10_000, "expiresAt": last});
    let made = admin.ok(200, "POST", INVITATIONS, &body(&fields)).await;
    assert_eq!(codes(&made).into_iter().collect::<HashSet<_>>().len(), 10_000);
}

#[tokio::test]
async fn bad_values_are_refused_with_the_reason() {
    let admin = admin_with_lanes().await;
    let too_late = rfc3339(START + Invitation::MAX_AHEAD_MS + 1_000);
    for (fields, reason) in [
        (json!({"count": 0}), "count is 0"),
        (json!({"count": 10_001}), "count is 10001"),
        (json!({"count": -1}), "`-1`"),
        (json!({"usesEach": 0}), "usesEach is 0"),
        (json!({"usesEach": 10_001}), "usesEach is 10001"),
        (json!({"expiresAt": rfc3339(START)}), "in the past"),
        (json!({"expiresAt": too_late}), "400 days"),
        (json!({"expiresAt": "tomorrow"}), "not a time"),
        (json!({"expiresAt": null}), "null"),
        (json!({"lane": "standard"}), "standard"),
        (json!({"lane": "a b"}), "not allowed"),
        (json!({"uses": 1}), "uses"),
    ] {
        let body = body(&fields);
        let detail = admin.refused(400, "INVALID_REQUEST", ("POST", INVITATIONS, &body)).await;
        assert!(detail.contains(reason), "{fields}: {detail}");
    }
    let lane = body(&json!({"lane": "press"}));
    let detail = admin.refused(409, "CONFLICT", ("POST", INVITATIONS, &lane)).await;
    assert!(detail.contains("press"), "{detail}");
    let ghost = ("POST", "/waiting-item/ghost/invitations", &*body(&json!({})));
    admin.refused(404, "ITEM_NOT_FOUND", ghost).await;
}

#[tokio::test]
async fn the_audit_log_has_the_call_and_none_of_its_codes() {
    let admin = admin_with_lanes().await;
    let made = admin.ok(200, "POST", INVITATIONS, &body(&json!({"count": 2}))).await;
    let log = admin.ok(200, "GET", "/audit?limit=1", "").await;
    let entry = &log["entries"][0];
    assert_eq!(
        (&entry["action"], &entry["itemId"]),
        (&json!("create invitations"), &json!("concert"))
    );
    let expires_at = rfc3339(START + DAY_MS);
    let recorded = json!({"lane": "members", "count": 2, "usesEach": 1, "expiresAt": expires_at});
    assert_eq!(entry["to"], recorded);
    let all = log.to_string();
    assert!(codes(&made).iter().all(|code| !all.contains(code)), "{all}");
}
