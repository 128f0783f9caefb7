//! Authentication of admin calls.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use daegi_runtime::http::Peer;
use daegi_store::{CurrentLeader, Epoch, Lease};
use serde_json::json;

use super::harness::{AdminHarness, ITEM, QUOTA, TOKEN};

#[tokio::test]
async fn without_the_token_every_path_gets_the_same_response() {
    let admin = AdminHarness::open().await;
    let mut bodies = Vec::new();
    for (method, path) in [
        ("GET", "/internal/admin/v1/waiting-item/concert"),
        ("GET", "/internal/admin/v1/waiting-item/unknown"),
        ("PATCH", "/internal/admin/v1/waiting-item/concert"),
        ("DELETE", "/internal/admin/v1/leader"),
        ("GET", "/internal/admin/v1/no-such-call"),
        ("GET", "/internal/admin/v2"),
        ("GET", "/internal/admin/"),
        ("GET", "/internal/admin"),
        ("PUT", "/internal/admin/v1/waiting-queue/token-count-to-move?tokenCountToMove=-1"),
    ] {
        let request = Request::builder().method(method).uri(path);
        let reply = admin.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(reply.status, 401, "{method} {path}");
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
        assert!(!reply.headers.contains_key("allow"), "{method} {path}");
        bodies.push(reply.body);
    }
    assert!(bodies.iter().all(|body| *body == bodies[0] && body["code"] == "UNAUTHORIZED"));
}

#[tokio::test]
async fn only_the_complete_bearer_token_is_accepted() {
    let admin = AdminHarness::open().await;
    let status = async |authorization: &str| {
        let request = Request::get("/internal/admin/v1/leader");
        let request = request.header("authorization", authorization);
        admin.send(request.body(Body::empty()).unwrap()).await.status.as_u16()
    };
    assert_eq!(status(&format!("Bearer {TOKEN}")).await, 200);
    assert_eq!(status(&format!("bearer {TOKEN}")).await, 200);
    for wrong in [
        "".to_owned(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        TOKEN.to_owned(),
        format!("Basic {TOKEN}"),
        format!("Bearer {TOKEN}x"),
        format!("Bearer {}", &TOKEN[1..]),
        format!("Bearer {}", TOKEN.to_uppercase()),
    ] {
        assert_eq!(status(&wrong).await, 401, "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_of_an_address_are_delayed_and_a_correct_one_is_not() {
    // Installs the recorder before anything is counted.
    let _ = daegi_runtime::telemetry::render();
    let admin = AdminHarness::open().await;
    let took = async |address: &str, token: &str, status: u16| {
        let begin = tokio::time::Instant::now();
        let request = Request::get("/internal/admin/v1/leader")
            .header("authorization", format!("Bearer {token}"))
            .extension(Peer(address.parse().unwrap()));
        let reply = admin.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(reply.status, status);
        begin.elapsed()
    };
    let mut delays = Vec::new();
    for port in 0..8 {
        delays.push(took(&format!("192.0.2.1:{port}"), "guess-number-seven", 401).await);
    }
    assert!(delays.is_sorted() && delays[0] < delays[7], "{delays:?}");
    assert!(delays[7] <= Duration::from_secs(3), "{delays:?}");
    assert!(took("192.0.2.2:1", "guess-number-seven", 401).await < delays[7]);
    assert!(took("192.0.2.1:9", TOKEN, 200).await < delays[0]);
    let metrics = daegi_runtime::telemetry::render();
    assert!(metrics.contains("daegi_admin_sign_ins_failed_total"), "{metrics}");
}

#[tokio::test]
async fn with_the_token_unknown_calls_and_methods_get_problems() {
    let admin = AdminHarness::open().await;
    admin.refused(404, "NOT_FOUND", ("GET", "/no-such-call", "")).await;
    for (method, path) in [
        ("POST", QUOTA),
        ("DELETE", QUOTA),
        ("POST", "/waiting-queue/token-count"),
        ("PUT", "/waiting-item"),
        ("POST", ITEM),
        ("GET", "/waiting-item/concert/pause"),
        ("PUT", "/waiting-item/concert/policy"),
        ("GET", "/waiting-item/concert/manually"),
        ("POST", "/leader"),
    ] {
        admin.refused(405, "METHOD_NOT_ALLOWED", (method, path, "")).await;
    }
}

#[tokio::test]
async fn a_standby_reports_that_it_does_not_lead() {
    let admin = AdminHarness::open().await;
    let leader = admin.ok(200, "GET", "/leader", "").await;
    assert!(!leader["replica"].as_str().unwrap().is_empty());
    assert_eq!(leader["leading"], false);
    for unknown in ["leader", "epoch", "since", "termSeconds", "lastTickMillis"] {
        assert!(leader[unknown].is_null(), "{unknown}: {leader}");
    }
    for (name, value) in [
        ("outboxPending", 0),
        ("handOvers", 0),
        ("staleRefusals", 0),
        ("tickMs", 1000),
        ("tokenCountToMove", 10),
    ] {
        assert_eq!(leader[name], value, "{name}");
    }
}

#[tokio::test]
async fn a_standby_names_the_leader() {
    let admin = AdminHarness::open().await;
    let leases = admin.store.lock();
    let lease =
        Lease::try_acquire(&*admin.store, Duration::from_secs(60), 1_000).await.unwrap().unwrap();
    let record = |leader: &str, epoch| CurrentLeader { leader: leader.into(), epoch, since: 1_000 };
    let epoch = lease.epoch().0;
    leases.publish_leader(&record("the other one", lease.epoch())).await.unwrap();
    leases.publish_leader(&record("a former one", Epoch(0))).await.unwrap();
    let leader = admin.ok(200, "GET", "/leader", "").await;
    assert_eq!((&leader["leading"], &leader["leader"]), (&json!(false), &json!("the other one")));
    assert_eq!(
        (&leader["epoch"], &leader["since"]),
        (&json!(epoch), &json!("1970-01-01T00:00:01.000Z"))
    );
    lease.release().await;
    assert!(admin.ok(200, "GET", "/leader", "").await["leader"].is_null(), "no replica leads");
}
