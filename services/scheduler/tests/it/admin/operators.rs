//! Named operators: roles, items, expiry and removal.

use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{AdminHarness, ITEM, QUOTA, Reply, TOKEN};

/// Creates an operator and returns the token.
async fn token_of(admin: &AdminHarness, fields: Value) -> String {
    let created = admin.ok(201, "POST", "/operators", &fields.to_string()).await;
    created["token"].as_str().unwrap().to_owned()
}

async fn status(admin: &AdminHarness, token: &str, (method, path): (&str, &str)) -> u16 {
    call(admin, token, (method, path, "")).await.status.as_u16()
}

async fn call(admin: &AdminHarness, token: &str, call: (&str, &str, &str)) -> Reply {
    admin.call_with(token, call).await
}

#[tokio::test]
async fn a_viewer_changes_nothing_an_operator_resets_nothing_and_an_admin_may_do_both() {
    let admin = AdminHarness::open().await;
    let document = admin.ok(200, "GET", "/openapi.json", "").await;
    let token = async |role: &str| token_of(&admin, json!({ "name": role, "role": role })).await;
    let [viewer, operator, owner] =
        [token("viewer").await, token("operator").await, token("admin").await];
    let mut changes = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let place = path.replace("{itemId}", "concert").replace("{name}", "another");
        for method in methods.as_object().unwrap().keys().filter(|name| *name != "parameters") {
            let call = (method.to_uppercase(), place.as_str());
            let call = (call.0.as_str(), call.1);
            let expected = match (method.as_str(), path.starts_with("/operators")) {
                ("get", false) => 200,
                _ => 403,
            };
            assert_eq!(status(&admin, &viewer, call).await, expected, "viewer: {call:?}");
            changes += u32::from(expected == 403);
        }
    }
    assert!(changes >= 14, "{changes}");
    for call in [
        ("POST", "/waiting-item/concert/reset"),
        ("DELETE", ITEM),
        ("PUT", QUOTA),
        ("POST", "/recovery/declare-loss"),
        ("GET", "/operators"),
    ] {
        assert_eq!(status(&admin, &operator, call).await, 403, "{call:?}");
    }
    assert_eq!(status(&admin, &operator, ("POST", "/waiting-item/concert/pause")).await, 200);
    assert_eq!(status(&admin, &owner, ("POST", "/waiting-item/concert/reset")).await, 200);
    let reply = call(&admin, &viewer, ("POST", "/waiting-item/concert/pause", "")).await;
    assert_eq!(reply.body["code"], "FORBIDDEN");
    assert_eq!(reply.body["detail"], "this call needs the role operator, yours is viewer");
}

#[tokio::test]
async fn the_audit_log_has_the_proven_name_and_not_the_one_of_the_header() {
    let admin = AdminHarness::open().await;
    let token = token_of(&admin, json!({ "name": "kim", "role": "operator" })).await;
    let request = axum::http::Request::post("/internal/admin/v1/waiting-item/concert/pause")
        .header("authorization", format!("Bearer {token}"))
        .header("x-operator", "lee")
        .body(axum::body::Body::empty());
    assert_eq!(admin.send(request.unwrap()).await.status, 200);
    let audit = admin.ok(200, "GET", "/audit", "").await;
    let [paused, created] = [&audit["entries"][0], &audit["entries"][1]];
    assert_eq!((&paused["operator"], &paused["operatorVerified"]), (&json!("kim"), &json!(true)));
    assert_eq!(created["action"], "create operator");
    assert_eq!(created["operatorVerified"], false, "the admin token proves no name");
    assert!(!audit.to_string().contains(&token), "{audit}");
}

#[tokio::test]
async fn an_operator_of_some_items_sees_and_changes_only_those() {
    let admin = AdminHarness::open().await;
    for id in ["spring-1", "spring-2"] {
        let body = json!({ "itemId": id, "itemName": id, "remainCount": 5 }).to_string();
        admin.ok(201, "POST", "/waiting-item", &body).await;
    }
    let fields = json!({ "name": "kim", "role": "operator", "items": "spring-" });
    let token = token_of(&admin, fields).await;
    let get = async |path: &str| call(&admin, &token, ("GET", path, "")).await.body;
    let me = get("/me").await;
    assert_eq!(me, json!({ "name": "kim", "role": "operator", "items": "spring-" }));
    let overview = get("/overview").await;
    assert_eq!((&overview["matching"], &overview["totals"]["lines"]), (&json!(2), &json!(2)));
    assert_eq!(get("/waiting-item").await["items"].as_array().unwrap().len(), 2);
    assert_eq!(get("/waiting-queue/token-count").await["items"].as_array().unwrap().len(), 2);
    let counts = get("/waiting-queue/token-count?itemId=concert&itemId=spring-1").await;
    assert_eq!(counts["unknownItemIds"], json!(["concert"]), "as if it did not exist");
    let audited = get("/audit").await["entries"].as_array().unwrap().len();
    assert_eq!(audited, 2, "the two items, without the operator");

    assert_eq!(status(&admin, &token, ("POST", "/waiting-item/spring-1/pause")).await, 200);
    let other = [
        ("POST", "/waiting-item/concert/pause"),
        ("POST", "/waiting-item/concer%74/pause"),
        ("GET", "/waiting-item/concert"),
        ("GET", "/waiting-item/concert/line"),
        ("PUT", "/waiting-item/concert"),
        ("POST", "/waiting-item"),
        ("GET", "/access"),
    ];
    for call in other {
        assert_eq!(status(&admin, &token, call).await, 403, "{call:?}");
    }
}

#[tokio::test]
async fn a_removed_or_expired_operator_has_no_access() {
    let admin = AdminHarness::open().await;
    let token = token_of(&admin, json!({ "name": "kim", "role": "viewer" })).await;
    let until = json!({ "name": "guest", "role": "viewer", "expiresAt": admin.time_in(60_000) });
    let guest = token_of(&admin, until).await;
    for token in [&token, &guest] {
        assert_eq!(status(&admin, token, ("GET", "/overview")).await, 200);
    }
    // As another replica would.
    assert!(admin.store.remove_operator("kim").await.unwrap());
    admin.clock.advance(Duration::from_secs(2));
    assert_eq!(status(&admin, &token, ("GET", "/overview")).await, 401);
    admin.clock.advance(Duration::from_secs(58));
    assert_eq!(status(&admin, &guest, ("GET", "/overview")).await, 401);
    admin.ok(204, "DELETE", "/operators/guest", "").await;
    let detail = admin.refused(404, "NOT_FOUND", ("DELETE", "/operators/guest", "")).await;
    assert_eq!(detail, "there is no operator guest");
}

#[tokio::test]
async fn a_token_is_shown_once_and_stored_as_a_hash() {
    let admin = AdminHarness::open().await;
    let token = token_of(&admin, json!({ "name": "kim", "role": "viewer" })).await;
    let list = admin.ok(200, "GET", "/operators", "").await;
    assert_eq!(list["operators"][0]["name"], "kim");
    let stored = admin.store.operators().await.unwrap().concat();
    for text in [list.to_string(), stored] {
        assert!(!text.contains(&token[9..]), "{text}");
    }
}

#[tokio::test]
async fn bad_operators_are_refused_with_the_reason() {
    let admin = AdminHarness::open().await;
    token_of(&admin, json!({ "name": "kim", "role": "viewer" })).await;
    let past = admin.time_in(0);
    for (body, status, code, detail) in [
        (
            json!({ "name": "kim", "role": "admin" }),
            409,
            "CONFLICT",
            "there is an operator kim already",
        ),
        (
            json!({ "name": "k m", "role": "viewer" }),
            400,
            "INVALID_REQUEST",
            "an operator's name has",
        ),
        (
            json!({ "name": "lee", "role": "owner" }),
            400,
            "INVALID_REQUEST",
            "unknown variant `owner`",
        ),
        (
            json!({ "name": "lee", "role": "admin", "items": "a" }),
            400,
            "INVALID_REQUEST",
            "not limited",
        ),
        (
            json!({ "name": "lee", "role": "viewer", "items": "" }),
            400,
            "INVALID_REQUEST",
            "items is",
        ),
        (
            json!({ "name": "lee", "role": "viewer", "expiresAt": past }),
            400,
            "INVALID_REQUEST",
            "in the past",
        ),
        (
            json!({ "name": "lee", "role": "viewer", "expiresAt": "soon" }),
            400,
            "INVALID_REQUEST",
            "expiresAt",
        ),
    ] {
        let refused = admin.refused(status, code, ("POST", "/operators", &body.to_string())).await;
        assert!(refused.contains(detail), "{body}: {refused}");
    }
    assert_eq!(
        admin.ok(200, "GET", "/operators", "").await["operators"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn the_admin_token_is_an_admin_without_a_name() {
    let admin = AdminHarness::open().await;
    let me = call(&admin, TOKEN, ("GET", "/me", "")).await.body;
    assert_eq!(me, json!({ "name": null, "role": "admin", "items": null }));
}
