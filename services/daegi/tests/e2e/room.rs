//! A waiting room in this process, on free ports, reached over HTTP only.

use std::time::Duration;

use daegi::Listeners;
use daegi_runtime::{Config, Role, Shutdown};
use daegi_testkit::{Redis, eventually};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};

pub(crate) use daegi_testkit::fleet::ADMIN_TOKEN;

/// A running waiting room. Ends with the test.
pub(crate) struct Room {
    pub(crate) name: &'static str,
    pub(crate) http: Client,
    pub(crate) public: String,
    pub(crate) internal: String,
    pub(crate) redis: Option<Redis>,
    shutdown: Shutdown,
}

impl Room {
    /// One room per store: memory, and Redis where it can be had.
    pub(crate) async fn each() -> Vec<Self> {
        let mut rooms = vec![Self::open("memory", None, &[]).await];
        if let Some(redis) = daegi_testkit::redis_or_skip().await {
            rooms.push(Self::open("redis", Some(redis), &[]).await);
        }
        rooms
    }

    pub(crate) async fn open(name: &'static str, redis: Option<Redis>, args: &[&str]) -> Self {
        let store = redis.as_ref().map_or("memory".to_owned(), Redis::url);
        let mut room = Self::open_at(name, &store, args).await;
        room.redis = redis;
        room
    }

    /// A room whose lines are at this address.
    pub(crate) async fn open_at(name: &'static str, store: &str, args: &[&str]) -> Self {
        let any_port = "127.0.0.1:0";
        let mut all = vec!["--store", store, "--admin-token", ADMIN_TOKEN, "--tick-ms", "50"];
        all.extend(["--public-addr", any_port, "--internal-addr", any_port]);
        all.extend(["--token-count-to-move", "0"]);
        all.extend(args);
        let args = all.iter().map(ToString::to_string);
        let parsed = Config::parse(Role::AllInOne, args, []).unwrap();
        let config = parsed.into_config().unwrap();
        let listeners = Listeners::bind(&config).await.unwrap();
        let url = |listener: &tokio::net::TcpListener| {
            format!("http://{}", listener.local_addr().unwrap())
        };
        let (public, internal) =
            (url(listeners.public.as_ref().unwrap()), url(&listeners.internal));
        let shutdown = Shutdown::new();
        let running = daegi::run(config, listeners, shutdown.clone());
        shutdown.spawn("daegi", async { running.await.unwrap() });
        let (http, redis) = (Client::new(), None);
        let room = Self { name, http, public, internal, redis, shutdown };
        let ready = || async {
            let answer = room.http.get(format!("{}/readyz", room.internal)).send().await;
            answer.is_ok_and(|answer| answer.status().is_success())
        };
        eventually(Duration::from_secs(30), "the room is ready", ready).await;
        room
    }

    pub(crate) fn line(&self, item: &str) -> String {
        format!("{}/api/v1/item/{item}/waiting-queue", self.public)
    }

    pub(crate) async fn join(&self, item: &str, user: &str) -> Response {
        self.http.post(self.line(item)).header("user-id", user).send().await.unwrap()
    }

    /// Joins and returns the ticket; the place must be given.
    pub(crate) async fn ticket(&self, item: &str, user: &str) -> Value {
        let answer = self.join(item, user).await;
        assert!(answer.status().is_success(), "{}: {answer:?}", self.name);
        answer.json().await.unwrap()
    }

    pub(crate) async fn poll(&self, item: &str, token: &str) -> Response {
        self.http.get(format!("{}/{token}", self.line(item))).send().await.unwrap()
    }

    pub(crate) async fn poll_ok(&self, item: &str, token: &str) -> Value {
        let answer = self.poll(item, token).await;
        assert_eq!(answer.status(), StatusCode::OK, "{}", self.name);
        answer.json().await.unwrap()
    }

    /// A call of the admin API that must succeed.
    pub(crate) async fn admin(&self, method: Method, path: &str, body: Value) -> Value {
        let url = format!("{}/internal/admin/v1/{path}", self.internal);
        let mut request = self.http.request(method, url).bearer_auth(ADMIN_TOKEN);
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{}: {path}: {answer:?}", self.name);
        answer.json().await.unwrap()
    }

    /// Creates an item or sets its stock by hand.
    pub(crate) async fn stock(&self, item: &str, count: u32) {
        let body = json!({
            "itemName": "Friday 8 pm", "remainCount": count, "waitingQueueEnabled": true
        });
        self.admin(Method::POST, &format!("waiting-item/{item}/manually"), body).await;
    }

    pub(crate) async fn quota(&self, count: u32) {
        let body = json!({ "tokenCountToMove": count });
        self.admin(Method::PUT, "waiting-queue/token-count-to-move", body).await;
    }

    /// Whether this room's scheduler leads; not while the store is away.
    pub(crate) async fn is_led(&self) -> bool {
        let url = format!("{}/internal/admin/v1/leader", self.internal);
        let answer = self.http.get(url).bearer_auth(ADMIN_TOKEN).send().await.unwrap();
        answer.status().is_success() && answer.json::<Value>().await.unwrap()["leading"] == true
    }

    /// (waiting, entered) of one line.
    pub(crate) async fn counts(&self, item: &str) -> (u64, u64) {
        let path = format!("waiting-queue/token-count?itemId={item}");
        let counts = self.admin(Method::GET, &path, Value::Null).await;
        let line = &counts["items"][0];
        let count = |field: &str| line[field].as_u64().unwrap();
        (count("waitingTokenCount"), count("enteredTokenCount"))
    }

    /// Waits until at least this many are inside.
    pub(crate) async fn until_entered(&self, item: &str, at_least: u64) {
        let what = format!("{}: {at_least} people are inside", self.name);
        eventually(Duration::from_secs(60), &what, || async {
            self.counts(item).await.1 >= at_least
        })
        .await;
    }

    /// Lets nobody in from now on, and says how many are inside. Returns when those who answer people
    /// know it, too: they look at a line a few times a second.
    pub(crate) async fn hold(&self, item: &str) -> u64 {
        self.admin(Method::POST, &format!("waiting-item/{item}/pause"), Value::Null).await;
        let inside = self.counts(item).await.1;
        eventually(Duration::from_secs(20), "the pause is seen", || async {
            let seen: Value =
                self.http.get(self.line(item)).send().await.unwrap().json().await.unwrap();
            seen["lineState"] == "PAUSED" && seen["enteredCount"] == inside
        })
        .await;
        inside
    }

    pub(crate) async fn close(self) {
        self.shutdown.begin().await;
        self.shutdown.wait(Duration::from_secs(10)).await.unwrap();
    }
}
