//! The fleet as it is deployed: one process per role, two of those that scale, one Redis.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use daegi_testkit::{Process, Redis, eventually, free_port};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::process::signal;
use crate::room::ADMIN_TOKEN;

const TICKET_SECRETS: &str = "1:000102030405060708090a0b0c0d0e0f";
const PASS_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
    -----END PRIVATE KEY-----\n";

/// One process of the fleet; killed with the test.
struct Member {
    child: Process,
    public: String,
    internal: String,
}

fn binary(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_daegi")).with_file_name(name);
    assert!(path.exists(), "{name} is not built: run the tests of the whole workspace");
    path
}

fn member(name: &str, redis: &Redis) -> Member {
    let address = || format!("127.0.0.1:{}", free_port());
    let (public, internal) = (address(), address());
    let child = Command::new(binary(name))
        .env_clear()
        .env("DAEGI_STORE", redis.url())
        .env("DAEGI_PUBLIC_ADDR", &public)
        .env("DAEGI_INTERNAL_ADDR", &internal)
        .env("DAEGI_ADMIN_TOKEN", ADMIN_TOKEN)
        .env("DAEGI_TICKET_SECRETS", TICKET_SECRETS)
        .env("DAEGI_PASS_KEY", PASS_KEY)
        .env("DAEGI_TICK_MS", "50")
        .env("DAEGI_LEASE_MS", "1000")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Member {
        child: child.into(),
        public: format!("http://{public}"),
        internal: format!("http://{internal}"),
    }
}

async fn admin(http: &Client, member: &Member, method: Method, path: &str, body: Value) -> Value {
    let url = format!("{}/internal/admin/v1/{path}", member.internal);
    let request = http.request(method, url).bearer_auth(ADMIN_TOKEN);
    let request = if body.is_null() { request } else { request.json(&body) };
    request.send().await.unwrap().json().await.unwrap()
}

async fn leads(http: &Client, member: &Member) -> bool {
    admin(http, member, Method::GET, "leader", Value::Null).await["leading"] == true
}

async fn ready(http: &Client, member: &Member) {
    eventually(Duration::from_secs(30), "a member of the fleet is ready", || async {
        let answer = http.get(format!("{}/readyz", member.internal)).send().await;
        answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_pods_two_schedulers_and_a_leader_that_is_killed() {
    let Some(redis) = daegi_testkit::redis_or_loud().await else { return };
    let http = Client::new();
    let pods = [member("daegi-api", &redis), member("daegi-api", &redis)];
    let mut schedulers = vec![member("daegi-scheduler", &redis), member("daegi-scheduler", &redis)];
    let consumer = member("daegi-consumer", &redis);
    for one in pods.iter().chain(&schedulers).chain([&consumer]) {
        ready(&http, one).await;
    }

    // Told to one scheduler, in force for all.
    let item = json!({"itemName": "concert", "remainCount": 50, "waitingQueueEnabled": true});
    admin(&http, &schedulers[0], Method::POST, "waiting-item/concert/manually", item).await;
    let quota = json!({ "tokenCountToMove": 0 });
    let path = "waiting-queue/token-count-to-move";
    admin(&http, &schedulers[0], Method::PUT, path, quota.clone()).await;
    assert_eq!(admin(&http, &schedulers[1], Method::GET, path, Value::Null).await, quota);

    // Joined at one pod, polled at the other.
    let line = |pod: usize| format!("{}/api/v1/item/concert/waiting-queue", pods[pod].public);
    let mut tokens = Vec::new();
    for person in 0..20 {
        let request = http.post(line(person % 2)).header("user-id", format!("person-{person}"));
        let ticket: Value = request.send().await.unwrap().json().await.unwrap();
        assert_eq!(ticket["position"], person + 1);
        tokens.push(ticket["token"].as_str().unwrap().to_owned());
    }
    for (person, token) in tokens.iter().enumerate() {
        let url = format!("{}/{token}", line((person + 1) % 2));
        let ticket: Value = http.get(url).send().await.unwrap().json().await.unwrap();
        assert_eq!(
            (&ticket["status"], &ticket["position"]),
            (&json!("WAITING"), &json!(person + 1))
        );
    }

    // The leader is killed; the other one takes over and lets people in.
    let first_leads = leads(&http, &schedulers[0]).await;
    let leader = schedulers.remove(usize::from(!first_leads));
    signal(&leader.child, "KILL");
    drop(leader);
    let survivor = &schedulers[0];
    eventually(Duration::from_secs(10), "the standby leads", || leads(&http, survivor)).await;
    admin(&http, survivor, Method::PUT, path, json!({ "tokenCountToMove": 4 })).await;
    eventually(Duration::from_secs(10), "everybody is inside", || async {
        let counts = admin(&http, survivor, Method::GET, "waiting-queue/token-count", Value::Null);
        counts.await["totalEntered"] == 20
    })
    .await;

    // An orderly end is an end with 0.
    for mut one in schedulers.into_iter().chain(pods).chain([consumer]) {
        signal(&one.child, "TERM");
        assert_eq!(one.child.wait().unwrap().code(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_that_gets_sigterm_hands_over_at_once() {
    let Some(redis) = daegi_testkit::redis_or_loud().await else { return };
    let http = Client::new();
    let mut first = member("daegi-scheduler", &redis);
    eventually(Duration::from_secs(30), "the first leads", || async {
        http.get(format!("{}/readyz", first.internal)).send().await.is_ok()
            && leads(&http, &first).await
    })
    .await;
    let second = member("daegi-scheduler", &redis);
    ready(&http, &second).await;
    assert!(!leads(&http, &second).await);
    signal(&first.child, "TERM");
    assert_eq!(first.child.wait().unwrap().code(), Some(0));
    eventually(Duration::from_secs(10), "the second leads", || leads(&http, &second)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_disagrees_about_partitions_refuses_to_start() {
    let Some(redis) = daegi_testkit::redis_or_loud().await else { return };
    let http = Client::new();
    let scheduler = member("daegi-scheduler", &redis);
    ready(&http, &scheduler).await;
    let output = Command::new(binary("daegi-scheduler"))
        .env_clear()
        .env("DAEGI_STORE", redis.url())
        .env("DAEGI_INTERNAL_ADDR", "127.0.0.1:0")
        .env("DAEGI_ADMIN_TOKEN", ADMIN_TOKEN)
        .env("DAEGI_TICKET_SECRETS", TICKET_SECRETS)
        .env("DAEGI_PARTITIONS", "8")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains("16 partitions") && said.contains("started with 8"), "{said}");
}

#[test]
fn the_fleet_refuses_to_start_without_secrets() {
    for (name, missing) in [("daegi-api", "ticket-secrets"), ("daegi-scheduler", "admin-token")] {
        let output = Command::new(binary(name))
            .env_clear()
            .env("DAEGI_STORE", "redis://127.0.0.1:1")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{name}: {said}");
        assert!(said.contains(missing), "{name}: {said}");
    }
}
