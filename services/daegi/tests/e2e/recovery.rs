//! Redis loses everything, or the newest writes, while a line waits: whoever keeps asking stands
//! where they stood, and the line goes on in the old order.

use std::time::Duration;

use daegi_testkit::{Redis, eventually, redis_or_skip, shared_kafka_or_skip};
use futures_util::{StreamExt, stream};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::catalogue::{Catalogue, changed};
use crate::member::{Fleet, FleetProcess};

/// How many wait when everything is lost.
const PEOPLE: usize = 20_000;
/// How many ask at once.
const ABREAST: usize = 64;
const SOON: Duration = Duration::from_secs(60);
const QUOTA: &str = "waiting-queue/token-count-to-move";

/// The people of one line, and the pods they ask.
struct Crowd {
    http: Client,
    pods: [String; 2],
    /// In the order of their places.
    tokens: Vec<String>,
}

impl Crowd {
    fn new(fleet: &Fleet, pods: &[FleetProcess; 2]) -> Self {
        let line = |pod: &FleetProcess| format!("{}/api/v1/item/concert/waiting-queue", pod.public);
        let pods = [line(&pods[0]), line(&pods[1])];
        Self { http: fleet.http.clone(), pods, tokens: Vec::new() }
    }

    /// Joins so many more; returns their tokens in the order of their places.
    async fn join(&self, name: &str, count: usize) -> Vec<String> {
        let tickets = stream::iter(0..count).map(|n| async move {
            let ticket = self.place(n % 2, &format!("{name}-{n}")).await;
            (ticket["position"].as_u64().unwrap(), ticket["token"].as_str().unwrap().to_owned())
        });
        let mut tickets: Vec<_> = tickets.buffer_unordered(ABREAST).collect().await;
        tickets.sort_unstable();
        tickets.into_iter().map(|(_, token)| token).collect()
    }

    /// A place for one person, however long the pod needs to find its store and item again.
    async fn place(&self, pod: usize, user: &str) -> Value {
        eventually(SOON, "there is a place", async || {
            let request = self.http.post(&self.pods[pod]).header("user-id", user);
            let answer = request.send().await.unwrap();
            if answer.status().is_success() { answer.json().await.ok() } else { None }
        })
        .await
    }

    /// One poll; none while the pod asks for patience.
    async fn poll(&self, pod: usize, token: &str) -> Option<Value> {
        let answer = self.http.get(format!("{}/{token}", self.pods[pod])).send().await.unwrap();
        match answer.status() {
            StatusCode::OK => Some(answer.json().await.unwrap()),
            StatusCode::SERVICE_UNAVAILABLE => None,
            other => panic!("{other}: {answer:?}"),
        }
    }

    async fn ticket(&self, pod: usize, token: &str) -> Value {
        eventually(SOON, "the pod answers", async || self.poll(pod, token).await).await
    }

    /// Everybody asks once, the last ones first; returns what they are told, in their order.
    async fn ask_all(&self, tokens: &[String]) -> Vec<Value> {
        let asked = tokens.iter().enumerate().rev();
        let told = stream::iter(asked).map(async |(n, token)| self.ticket(n % 2, token).await);
        let mut told: Vec<_> = told.buffered(ABREAST).collect().await;
        told.reverse();
        told
    }

    /// Waits until both pods know how many stand before this one.
    async fn until_position(&self, token: &str, position: usize) {
        for pod in [0, 1] {
            eventually(SOON, "the pods know the line", async || {
                self.poll(pod, token).await.is_some_and(|told| told["position"] == position)
            })
            .await;
        }
    }

    /// That these people stand in this order, from this position on.
    async fn stand(&self, tokens: &[String], from: usize) {
        self.until_position(tokens.last().unwrap(), from + tokens.len() - 1).await;
        for (n, told) in self.ask_all(tokens).await.iter().enumerate() {
            assert_eq!((&told["status"], &told["position"]), (&json!("WAITING"), &json!(from + n)));
        }
    }
}

async fn quota(scheduler: &FleetProcess, count: u32) {
    let body = json!({ "tokenCountToMove": count });
    eventually(SOON, "the quota is set", async || {
        scheduler.admin(Method::PUT, QUOTA, body.clone()).await == body
    })
    .await;
}

async fn entered(scheduler: &FleetProcess) -> usize {
    let path = "waiting-queue/token-count?itemId=concert";
    let counts = scheduler.admin(Method::GET, path, Value::Null).await;
    counts["totalEntered"].as_u64().unwrap_or(0) as usize
}

/// Lets some people in: they must be the first of the line, whoever else joined meanwhile.
async fn goes_on_in_order(crowd: &Crowd, scheduler: &FleetProcess, line: &[String]) {
    quota(scheduler, 20).await;
    eventually(SOON, "people are let in", async || entered(scheduler).await >= 100).await;
    // Checked inside the script that lets people in: nobody is from here on.
    scheduler.admin(Method::POST, "waiting-item/concert/pause", Value::Null).await;
    let inside = entered(scheduler).await;
    crowd.until_position(&line[inside], 1).await;
    for (n, told) in crowd.ask_all(&line[..inside + 50]).await.iter().enumerate() {
        let status = if n < inside { "ENTERABLE" } else { "WAITING" };
        assert_eq!(told["status"], status, "place {n} of {inside} inside: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_twenty_thousand_re_forms_after_flushall() {
    let (Some(redis), Some(kafka)) = (redis_or_skip().await, shared_kafka_or_skip().await) else {
        return;
    };
    let topics = kafka.create_topics().await.unwrap();
    let mut catalogue = Catalogue::new(&kafka.bootstrap(), &topics);
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
    catalogue.publish(&[catalogue.record(&changed("concert", 100_000, 1))]).await;
    catalogue.settled(&scheduler, SOON).await;
    let mut crowd = Crowd::new(&fleet, &pods);
    crowd.tokens = crowd.join("person", PEOPLE).await;

    redis.command::<()>(&["FLUSHALL"]).await.unwrap();
    // The item comes back from Kafka. The last one asks first, and newcomers do not wait.
    let first = eventually(SOON, "the loss is told", async || {
        let told = crowd.ticket(0, &crowd.tokens[PEOPLE - 1]).await;
        (told["lineState"] == "RECOVERING").then_some(told)
    })
    .await;
    let newcomers = crowd.join("newcomer", 20).await;
    assert_eq!(first["status"], "WAITING");
    assert!(first["pollAfterMs"].as_u64().unwrap() <= 5000, "{first}");
    let told = crowd.ask_all(&crowd.tokens).await;
    assert!(told.iter().all(|told| told["status"] == "WAITING"));
    crowd.stand(&crowd.tokens, 1).await;
    crowd.stand(&newcomers, PEOPLE + 1).await;
    goes_on_in_order(&crowd, &scheduler, &crowd.tokens).await;
}

/// A server with an older state, under the same address, as after a fail-over.
async fn restore(redis: &mut Redis) {
    redis.stop();
    redis.start_again().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fail_over_that_lost_the_newest_places_puts_them_back_before_newcomers() {
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
    let mut crowd = Crowd::new(&fleet, &pods);
    crowd.tokens = crowd.join("kept", 300).await;
    redis.command::<()>(&["SAVE"]).await.unwrap();
    let lost = crowd.join("lost", 200).await;
    restore(&mut redis).await;

    let newcomers = crowd.join("late", 5).await;
    crowd.tokens.extend(lost);
    crowd.ask_all(&crowd.tokens).await;
    crowd.stand(&crowd.tokens, 1).await;
    crowd.stand(&newcomers, crowd.tokens.len() + 1).await;
    goes_on_in_order(&crowd, &scheduler, &crowd.tokens).await;
}
