//! A deployed fleet: two api pods, two schedulers, one consumer, one Redis.

use std::process::Command;
use std::time::Duration;

use daegi_testkit::eventually;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::ADMIN_TOKEN;
use crate::processes::{Fleet, FleetProcess, TICKET_SECRETS, binary};

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_admits_in_order_after_its_leader_is_killed() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let fleet = Fleet::new(&redis);
    let http = &fleet.http;
    let pods = [fleet.start("daegi-api"), fleet.start("daegi-api")];
    let mut schedulers = vec![fleet.start("daegi-scheduler"), fleet.start("daegi-scheduler")];
    let consumer = fleet.start("daegi-consumer");
    for process in pods.iter().chain(&schedulers).chain([&consumer]) {
        process.wait_ready().await;
    }

    // A change at one scheduler applies to all.
    let item = json!({"itemName": "concert", "remainCount": 50, "waitingQueueEnabled": true});
    schedulers[0].admin(Method::POST, "waiting-item/concert/manually", item).await;
    let quota = json!({ "tokenCountToMove": 0 });
    let path = "waiting-queue/token-count-to-move";
    schedulers[0].admin(Method::PUT, path, quota.clone()).await;
    assert_eq!(schedulers[1].admin(Method::GET, path, Value::Null).await, quota);

    assert_overview(&schedulers[1], 2).await;

    // Users join at one pod and poll at the other.
    let line = |pod: usize| format!("{}/api/v1/item/concert/waiting-queue", pods[pod].public);
    let mut tokens = Vec::new();
    for n in 0..20 {
        let request = http.post(line(n % 2)).header("user-id", format!("user-{n}"));
        let ticket: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!(ticket["position"], n + 1);
        tokens.push(ticket["token"].as_str().unwrap().to_owned());
    }
    for (n, token) in tokens.iter().enumerate() {
        let url = format!("{}/{token}", line((n + 1) % 2));
        let ticket: Value = http.get(url).send().await.unwrap().json().await.unwrap();
        assert_eq!((&ticket["status"], &ticket["position"]), (&json!("WAITING"), &json!(n + 1)));
    }

    // The standby takes over from the killed leader and admits users.
    let first_leads = schedulers[0].is_leader().await;
    schedulers.remove(usize::from(!first_leads)).kill();
    let survivor = &schedulers[0];
    eventually(Duration::from_secs(10), "the standby leads", || survivor.is_leader()).await;
    survivor.admin(Method::PUT, path, json!({ "tokenCountToMove": 4 })).await;
    eventually(Duration::from_secs(10), "all users are admitted", || async {
        let counts = survivor.admin(Method::GET, "waiting-queue/token-count", Value::Null);
        counts.await["totalEntered"] == 20
    })
    .await;

    assert_overview(survivor, 1).await;

    // Every process exits with 0 on SIGTERM.
    for process in schedulers.into_iter().chain(pods).chain([consumer]) {
        assert_eq!(process.terminate().code(), Some(0));
    }
}

/// Asserts that a replica reports all schedulers, one leader, and the first audit entry.
async fn assert_overview(replica: &FleetProcess, schedulers: usize) {
    eventually(Duration::from_secs(30), "the overview has all replicas and one leader", || async {
        let overview = replica.admin(Method::GET, "overview", Value::Null).await;
        let seen = overview["schedulers"].as_array().unwrap();
        let leaders = seen.iter().filter(|scheduler| scheduler["leading"] == true).count();
        (seen.len(), leaders) == (schedulers, 1)
    })
    .await;
    let audit = replica.admin(Method::GET, "audit", Value::Null).await;
    let oldest = audit["entries"].as_array().unwrap().last().unwrap();
    assert_eq!((&oldest["action"], &oldest["itemId"]), (&json!("set by hand"), &json!("concert")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_with_another_partition_count_refuses_to_start() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let scheduler = Fleet::new(&redis).start("daegi-scheduler");
    scheduler.wait_ready().await;
    let output = Command::new(binary("daegi-scheduler"))
        .env_clear()
        .env("DAEGI_STORE", redis.url())
        .env("DAEGI_INTERNAL_ADDR", "127.0.0.1:0")
        .env("DAEGI_ADMIN_TOKEN", ADMIN_TOKEN)
        .env("DAEGI_TICKET_SECRETS", TICKET_SECRETS)
        .env("DAEGI_PARTITIONS", "8")
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64), "{stderr}");
    assert!(stderr.contains("16 partitions") && stderr.contains("started with 8"), "{stderr}");
}

#[test]
fn the_fleet_refuses_to_start_without_secrets() {
    for (name, missing) in [("daegi-api", "ticket-secrets"), ("daegi-scheduler", "admin-token")] {
        let output = Command::new(binary(name))
            .env_clear()
            .env("DAEGI_STORE", "redis://127.0.0.1:1")
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{name}: {stderr}");
        assert!(stderr.contains(missing), "{name}: {stderr}");
    }
}
