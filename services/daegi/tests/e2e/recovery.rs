//! Redis loses all data, or the newest writes, while a line waits. Users who keep polling reclaim
//! their numbers, and admission continues in the old order.

use std::time::Duration;

use daegi_testkit::{Redis, eventually, redis_or_skip, shared_kafka_or_skip};
use futures_util::{StreamExt, stream};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::processes::{Fleet, FleetProcess};
use crate::product_service::{ProductService, changed};

/// Waiting users when all data is lost.
const USERS: usize = 20_000;
const MAX_CONCURRENT: usize = 64;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const QUOTA: &str = "waiting-queue/token-count-to-move";

/// The users of one line, and the pods they call.
struct VirtualUsers {
    http: Client,
    pods: [String; 2],
    /// In the order of the line.
    tokens: Vec<String>,
}

impl VirtualUsers {
    fn new(fleet: &Fleet, pods: &[FleetProcess; 2]) -> Self {
        let line = |pod: &FleetProcess| format!("{}/api/v1/item/concert/waiting-queue", pod.public);
        let pods = [line(&pods[0]), line(&pods[1])];
        Self { http: fleet.http.clone(), pods, tokens: Vec::new() }
    }

    /// Joins `count` more users and returns their tokens in the order of the line.
    async fn join(&self, name: &str, count: usize) -> Vec<String> {
        let tickets = stream::iter(0..count).map(|n| async move {
            let ticket = self.join_one(n % 2, &format!("{name}-{n}")).await;
            (ticket["position"].as_u64().unwrap(), ticket["token"].as_str().unwrap().to_owned())
        });
        let mut tickets: Vec<_> = tickets.buffer_unordered(MAX_CONCURRENT).collect().await;
        tickets.sort_unstable();
        tickets.into_iter().map(|(_, token)| token).collect()
    }

    /// Joins one user. Retries until the pod has its store and item again.
    async fn join_one(&self, pod: usize, user: &str) -> Value {
        eventually(TEST_TIMEOUT, "the join succeeds", async || {
            let request = self.http.post(&self.pods[pod]).header("user-id", user);
            let response = request.send().await.unwrap();
            if response.status().is_success() { response.json().await.ok() } else { None }
        })
        .await
    }

    /// Polls once. Returns `None` on 503.
    async fn poll(&self, pod: usize, token: &str) -> Option<Value> {
        let response = self.http.get(format!("{}/{token}", self.pods[pod])).send().await.unwrap();
        match response.status() {
            StatusCode::OK => Some(response.json().await.unwrap()),
            StatusCode::SERVICE_UNAVAILABLE => None,
            other => panic!("{other}: {response:?}"),
        }
    }

    async fn ticket(&self, pod: usize, token: &str) -> Value {
        eventually(TEST_TIMEOUT, "the poll succeeds", async || self.poll(pod, token).await).await
    }

    /// Polls each token once, the last one first. Returns the tickets in the order of `tokens`.
    async fn poll_all(&self, tokens: &[String]) -> Vec<Value> {
        let reversed = tokens.iter().enumerate().rev();
        let tickets =
            stream::iter(reversed).map(async |(n, token)| self.ticket(n % 2, token).await);
        let mut tickets: Vec<_> = tickets.buffered(MAX_CONCURRENT).collect().await;
        tickets.reverse();
        tickets
    }

    /// Waits until both pods return this position.
    async fn until_position(&self, token: &str, position: usize) {
        for pod in [0, 1] {
            eventually(TEST_TIMEOUT, "both pods return the position", async || {
                self.poll(pod, token).await.is_some_and(|ticket| ticket["position"] == position)
            })
            .await;
        }
    }

    /// Asserts that these tickets wait in this order, from this position on.
    async fn assert_waiting(&self, tokens: &[String], from: usize) {
        self.until_position(tokens.last().unwrap(), from + tokens.len() - 1).await;
        for (n, ticket) in self.poll_all(tokens).await.iter().enumerate() {
            assert_eq!(
                (&ticket["status"], &ticket["position"]),
                (&json!("WAITING"), &json!(from + n))
            );
        }
    }
}

async fn quota(scheduler: &FleetProcess, count: u32) {
    let body = json!({ "tokenCountToMove": count });
    eventually(TEST_TIMEOUT, "the quota is set", async || {
        scheduler.admin(Method::PUT, QUOTA, body.clone()).await == body
    })
    .await;
}

async fn entered(scheduler: &FleetProcess) -> usize {
    let path = "waiting-queue/token-count?itemId=concert";
    let counts = scheduler.admin(Method::GET, path, Value::Null).await;
    counts["totalEntered"].as_u64().unwrap_or(0) as usize
}

/// Admits some users and asserts that they are the first of the line.
async fn assert_admitted_in_order(users: &VirtualUsers, scheduler: &FleetProcess, line: &[String]) {
    quota(scheduler, 20).await;
    eventually(TEST_TIMEOUT, "users are admitted", async || entered(scheduler).await >= 100).await;
    // The admission script checks the pause, so no user is admitted after this call.
    scheduler.admin(Method::POST, "waiting-item/concert/pause", Value::Null).await;
    let admitted = entered(scheduler).await;
    users.until_position(&line[admitted], 1).await;
    for (n, ticket) in users.poll_all(&line[..admitted + 50]).await.iter().enumerate() {
        let status = if n < admitted { "ENTERABLE" } else { "WAITING" };
        assert_eq!(ticket["status"], status, "index {n} of {admitted} admitted: {ticket}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_twenty_thousand_recovers_after_flushall() {
    let (Some(redis), Some(kafka)) = (redis_or_skip().await, shared_kafka_or_skip().await) else {
        return;
    };
    let topics = kafka.create_topics().await.unwrap();
    let mut product_service = ProductService::new(&kafka.bootstrap(), &topics);
    let fleet = Fleet::new(&redis)
        .env("DAEGI_TOKEN_COUNT_TO_MOVE", "0")
        .env("DAEGI_RECOVERY_HOLD_MS", "5000")
        .with_kafka(&kafka.bootstrap(), &topics);
    let pods = [fleet.start("daegi-api"), fleet.start("daegi-api")];
    let scheduler = fleet.start_ready("daegi-scheduler").await;
    let _consumer = fleet.start_ready("daegi-consumer").await;
    for pod in &pods {
        pod.wait_ready().await;
    }
    product_service.publish(&[product_service.record(&changed("concert", 100_000, 1))]).await;
    product_service.settled(&scheduler, TEST_TIMEOUT).await;
    let mut users = VirtualUsers::new(&fleet, &pods);
    users.tokens = users.join("user", USERS).await;

    redis.command::<()>(&["FLUSHALL"]).await.unwrap();
    // The consumer restores the item from Kafka. The last ticket polls first, and new users join meanwhile.
    let first = eventually(TEST_TIMEOUT, "the line is RECOVERING", async || {
        let ticket = users.ticket(0, &users.tokens[USERS - 1]).await;
        (ticket["lineState"] == "RECOVERING").then_some(ticket)
    })
    .await;
    let newcomers = users.join("newcomer", 20).await;
    assert_eq!(first["status"], "WAITING");
    assert!(first["pollAfterMs"].as_u64().unwrap() <= 5000, "{first}");
    let tickets = users.poll_all(&users.tokens).await;
    assert!(tickets.iter().all(|ticket| ticket["status"] == "WAITING"));
    users.assert_waiting(&users.tokens, 1).await;
    users.assert_waiting(&newcomers, USERS + 1).await;
    assert_admitted_in_order(&users, &scheduler, &users.tokens).await;
}

/// Restarts the server at its last saved state, as after a fail-over.
async fn restore(redis: &mut Redis) {
    redis.stop();
    redis.start_again().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tickets_that_a_fail_over_lost_are_reclaimed_before_new_tickets() {
    let Some(mut redis) = redis_or_skip().await else { return };
    let fleet = Fleet::new(&redis)
        .env("DAEGI_TOKEN_COUNT_TO_MOVE", "0")
        .env("DAEGI_RECOVERY_HOLD_MS", "3000");
    let pods = [fleet.start("daegi-api"), fleet.start("daegi-api")];
    let scheduler = fleet.start_ready("daegi-scheduler").await;
    for pod in &pods {
        pod.wait_ready().await;
    }
    let item = json!({"itemName": "concert", "remainCount": 9000, "waitingQueueEnabled": true});
    scheduler.admin(Method::POST, "waiting-item/concert/manually", item).await;
    let mut users = VirtualUsers::new(&fleet, &pods);
    users.tokens = users.join("kept", 300).await;
    redis.command::<()>(&["SAVE"]).await.unwrap();
    let lost = users.join("lost", 200).await;
    restore(&mut redis).await;

    let newcomers = users.join("late", 5).await;
    users.tokens.extend(lost);
    users.poll_all(&users.tokens).await;
    users.assert_waiting(&users.tokens, 1).await;
    users.assert_waiting(&newcomers, users.tokens.len() + 1).await;
    assert_admitted_in_order(&users, &scheduler, &users.tokens).await;
}
