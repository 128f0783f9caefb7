//! Redis loses all data in the lobby of a draw, and again right after the draw. Opening, commitment, seed and
//! ranks come back from Kafka, as do the policy and the pause of another line.

use std::collections::BTreeSet;
use std::time::Duration;

use daegi_domain::draw::Cohort;
use daegi_domain::{ControlChanged, Number, Topic, Topics};
use daegi_testkit::{Redis, TopicReader, eventually, redis_or_skip, shared_kafka_or_skip};
use futures_util::{StreamExt, stream};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::processes::{Fleet, FleetProcess};
use crate::product_service::{ProductService, changed};

const USERS: usize = 200;
const MAX_CONCURRENT: usize = 32;
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A fleet with a lobby in `concert` and a paused line in `opera`.
struct Room {
    http: Client,
    pods: [FleetProcess; 2],
    scheduler: FleetProcess,
    _consumer: FleetProcess,
    settings: TopicReader,
    /// The users of the lobby: number and token.
    tickets: Vec<(Number, String)>,
}

impl Room {
    async fn open(redis: &Redis, brokers: &str, topics: &Topics) -> Self {
        let fleet = Fleet::new(redis)
            .env("DAEGI_TOKEN_COUNT_TO_MOVE", "0")
            .env("DAEGI_RECOVERY_HOLD_MS", "3000")
            .with_kafka(brokers, topics);
        let pods = [fleet.start("daegi-api"), fleet.start("daegi-api")];
        let scheduler = fleet.start_ready("daegi-scheduler").await;
        let consumer = fleet.start_ready("daegi-consumer").await;
        for pod in &pods {
            pod.wait_ready().await;
        }
        let settings =
            TopicReader::open(brokers, topics.name(Topic::ControlChanged)).await.unwrap();
        let (http, tickets) = (fleet.http.clone(), Vec::new());
        Self { http, pods, scheduler, _consumer: consumer, settings, tickets }
    }

    fn line(&self, pod: usize) -> String {
        format!("{}/api/v1/item/concert/waiting-queue", self.pods[pod % 2].public)
    }

    async fn operate(&self, method: Method, path: &str, body: Value) -> Value {
        self.scheduler.admin(method, &format!("waiting-item/{path}"), body).await
    }

    /// Joins the users of the lobby.
    async fn fill_lobby(&mut self) {
        let joins = stream::iter(0..USERS).map(|n| {
            let request = self.http.post(self.line(n)).header("user-id", format!("user-{n}"));
            async move { request.send().await.unwrap().json::<Value>().await.unwrap() }
        });
        let tickets: Vec<Value> = joins.buffer_unordered(MAX_CONCURRENT).collect().await;
        let keys: daegi_domain::TicketKeys = crate::processes::TICKET_SECRETS.parse().unwrap();
        let item = daegi_domain::ItemId::parse("concert").unwrap();
        let read = |ticket: &Value| {
            let token = ticket["token"].as_str().unwrap_or_else(|| panic!("{ticket}"));
            (keys.verify(&item, token).unwrap().number, token.to_owned())
        };
        self.tickets = tickets.iter().map(read).collect();
        self.tickets.sort_unstable();
    }

    /// Polls every ticket until it waits, and returns the positions in the order of `tickets`.
    async fn poll_all(&self) -> Vec<Option<u64>> {
        let polls = stream::iter(self.tickets.iter().enumerate()).map(async |(n, (_, token))| {
            eventually(TEST_TIMEOUT, "the ticket waits", async || {
                let url = format!("{}/{token}", self.line(n));
                let response = self.http.get(url).send().await.unwrap();
                match response.status() {
                    StatusCode::OK => {
                        let ticket: Value = response.json().await.unwrap();
                        assert_eq!(ticket["status"], "WAITING", "{ticket}");
                        Some(ticket["position"].as_u64())
                    }
                    StatusCode::SERVICE_UNAVAILABLE => None,
                    other => panic!("{other}: {response:?}"),
                }
            })
            .await
        });
        polls.buffered(MAX_CONCURRENT).collect().await
    }

    /// Waits until the draw has this state, and returns its record.
    async fn draw(&self, pod: usize, state: &str) -> Value {
        eventually(TEST_TIMEOUT, &format!("the draw is {state}"), async || {
            let response = self.http.get(format!("{}/draw", self.line(pod))).send().await.unwrap();
            if !response.status().is_success() {
                return None;
            }
            let record: Value = response.json().await.unwrap();
            (record["state"] == state).then_some(record)
        })
        .await
    }

    /// Waits for a published record of the concert's settings.
    async fn settings_published(&self, expected: impl Fn(&ControlChanged) -> bool) {
        loop {
            let record = self.settings.take(1).await.remove(0);
            let read: ControlChanged = serde_json::from_slice(&record.body.unwrap()).unwrap();
            if read.item_id.as_str() == "concert" && expected(&read) {
                return;
            }
        }
    }

    /// The settings of the paused line.
    async fn opera(&self) -> Value {
        eventually(TEST_TIMEOUT, "the item is there", async || {
            let item = self.operate(Method::GET, "opera", Value::Null).await;
            let settings = json!({ "policy": item["policy"], "paused": item["paused"],
                "remainCount": item["remainCount"], "itemName": item["itemName"] });
            item["policy"].is_object().then_some(settings)
        })
        .await
    }
}

/// Reads admissions in their order until every ticket of the lobby was admitted; repeats count once.
async fn admitted(topic: &TopicReader) -> Vec<Number> {
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    while order.len() < USERS {
        let body = topic.take(1).await.remove(0).body.unwrap();
        let event: Value = serde_json::from_slice(&body).unwrap();
        let number = Number(event["number"].as_u64().unwrap());
        if event["itemId"] == "concert" && seen.insert(number) {
            order.push(number);
        }
    }
    order
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draw_survives_the_loss_of_redis_in_the_lobby_and_after_the_opening() {
    let (Some(redis), Some(kafka)) = (redis_or_skip().await, shared_kafka_or_skip().await) else {
        return;
    };
    let topics = kafka.create_topics().await.unwrap();
    let mut product_service = ProductService::new(&kafka.bootstrap(), &topics);
    let mut room = Room::open(&redis, &kafka.bootstrap(), &topics).await;
    product_service.publish(&[product_service.record(&changed("concert", 100_000, 1))]).await;
    product_service.settled(&room.scheduler, TEST_TIMEOUT).await;
    let opera = json!({ "itemName": "Opera", "remainCount": 77, "waitingQueueEnabled": true });
    room.operate(Method::POST, "opera/manually", opera).await;
    let policy = json!({ "maxActive": 5, "lanes": [{ "name": "members", "weight": 30 }] });
    room.operate(Method::PATCH, "opera/policy", policy).await;
    room.operate(Method::POST, "opera/pause", Value::Null).await;
    let opera = room.opera().await;
    assert_eq!((&opera["paused"], &opera["policy"]["maxActive"]), (&json!(true), &json!(5)));

    let plan = json!({ "opening": { "opensAt": null, "order": "draw" }, "graceSeconds": 0 });
    room.operate(Method::PATCH, "concert/policy", plan).await;
    let commitment = room.draw(0, "COMMITTED").await["commitment"].clone();
    room.fill_lobby().await;
    let last = room.tickets.last().unwrap().0;
    room.settings_published(|read| read.lines[0].tail >= last).await;

    redis.command::<()>(&["FLUSHALL"]).await.unwrap();
    let positions = room.poll_all().await;
    assert_eq!(positions, vec![None; USERS], "the lobby, before the draw");
    assert_eq!(room.draw(1, "COMMITTED").await["commitment"], commitment);
    assert_eq!(room.opera().await, opera);

    room.operate(Method::POST, "concert/open", Value::Null).await;
    let drawn = room.draw(0, "DRAWN").await;
    assert_eq!(drawn["commitment"], commitment);
    room.settings_published(|read| {
        let draw = read.item.as_ref().and_then(|item| item.draw);
        draw.is_some_and(|draw| json!(draw.seed) == drawn["seed"])
    })
    .await;

    redis.command::<()>(&["FLUSHALL"]).await.unwrap();
    room.poll_all().await;
    assert_eq!(room.draw(1, "DRAWN").await, drawn, "one seed");
    assert_eq!(room.opera().await, opera);
    let seed = hex::decode(drawn["seed"].as_str().unwrap()).unwrap();
    let (first, size) =
        (drawn["cohortFirst"].as_u64().unwrap(), drawn["cohortSize"].as_u64().unwrap());
    let cohort = Cohort::new(Number(first), size, seed.try_into().unwrap());
    let mut expected: Vec<Number> = room.tickets.iter().map(|(number, _)| *number).collect();
    assert!(expected.iter().all(|number| cohort.contains(*number)), "{drawn}");
    expected.sort_unstable_by_key(|number| cohort.rank(*number));
    let place =
        |number: &Number| expected.iter().position(|other| other == number).unwrap() as u64 + 1;
    let places: Vec<_> = room.tickets.iter().map(|(number, _)| Some(place(number))).collect();
    eventually(TEST_TIMEOUT, "every pod returns the drawn positions", async || {
        room.poll_all().await == places
    })
    .await;

    let activated = topics.name(Topic::TokenActivated);
    let activated = TopicReader::open(&kafka.bootstrap(), activated).await.unwrap();
    let quota = json!({ "tokenCountToMove": 20 });
    room.scheduler.admin(Method::PUT, "waiting-queue/token-count-to-move", quota).await;
    assert_eq!(admitted(&activated).await, expected);
}
