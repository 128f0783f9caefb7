//! An all-in-one daegi inside the test process, on free ports, called over HTTP only.

use std::time::Duration;

use daegi::Listeners;
use daegi_runtime::{Config, Role, Shutdown};
use daegi_testkit::{Redis, eventually};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};

pub(crate) use daegi_testkit::fleet::ADMIN_TOKEN;

/// A running daegi. Stops when the test ends.
pub(crate) struct DaegiHarness {
    pub(crate) name: &'static str,
    pub(crate) http: Client,
    pub(crate) public: String,
    pub(crate) internal: String,
    pub(crate) redis: Option<Redis>,
    shutdown: Shutdown,
}

impl DaegiHarness {
    /// Starts one harness per store: memory, and Redis if it is installed.
    pub(crate) async fn each() -> Vec<Self> {
        let mut harnesses = vec![Self::open("memory", None, &[]).await];
        if let Some(redis) = daegi_testkit::redis_or_skip().await {
            harnesses.push(Self::open("redis", Some(redis), &[]).await);
        }
        harnesses
    }

    pub(crate) async fn open(name: &'static str, redis: Option<Redis>, args: &[&str]) -> Self {
        let store = redis.as_ref().map_or("memory".to_owned(), Redis::url);
        let mut harness = Self::open_at(name, &store, args).await;
        harness.redis = redis;
        harness
    }

    /// Starts a harness on this store URL.
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
        let harness = Self { name, http, public, internal, redis, shutdown };
        let ready = || async {
            let response = harness.http.get(format!("{}/readyz", harness.internal)).send().await;
            response.is_ok_and(|response| response.status().is_success())
        };
        eventually(Duration::from_secs(30), "daegi is ready", ready).await;
        harness
    }

    pub(crate) fn line(&self, item: &str) -> String {
        format!("{}/api/v1/item/{item}/waiting-queue", self.public)
    }

    pub(crate) async fn join(&self, item: &str, user: &str) -> Response {
        self.http.post(self.line(item)).header("user-id", user).send().await.unwrap()
    }

    /// Joins and returns the ticket. Panics if the join is refused.
    pub(crate) async fn ticket(&self, item: &str, user: &str) -> Value {
        let response = self.join(item, user).await;
        assert!(response.status().is_success(), "{}: {response:?}", self.name);
        response.json().await.unwrap()
    }

    pub(crate) async fn poll(&self, item: &str, token: &str) -> Response {
        self.http.get(format!("{}/{token}", self.line(item))).send().await.unwrap()
    }

    pub(crate) async fn poll_ok(&self, item: &str, token: &str) -> Value {
        let response = self.poll(item, token).await;
        assert_eq!(response.status(), StatusCode::OK, "{}", self.name);
        response.json().await.unwrap()
    }

    /// Calls the admin API. Panics unless the call succeeds.
    pub(crate) async fn admin(&self, method: Method, path: &str, body: Value) -> Value {
        let url = format!("{}/internal/admin/v1/{path}", self.internal);
        let mut request = self.http.request(method, url).bearer_auth(ADMIN_TOKEN);
        if !body.is_null() {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{}: {path}: {response:?}", self.name);
        response.json().await.unwrap()
    }

    /// Creates an item or sets its stock through the admin API.
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

    /// Whether the scheduler leads. `false` while the store is unavailable.
    pub(crate) async fn is_led(&self) -> bool {
        let url = format!("{}/internal/admin/v1/leader", self.internal);
        let response = self.http.get(url).bearer_auth(ADMIN_TOKEN).send().await.unwrap();
        response.status().is_success() && response.json::<Value>().await.unwrap()["leading"] == true
    }

    /// (waiting, entered) of one line.
    pub(crate) async fn counts(&self, item: &str) -> (u64, u64) {
        let path = format!("waiting-queue/token-count?itemId={item}");
        let counts = self.admin(Method::GET, &path, Value::Null).await;
        let line = &counts["items"][0];
        let count = |field: &str| line[field].as_u64().unwrap();
        (count("waitingTokenCount"), count("enteredTokenCount"))
    }

    /// Waits until at least this many users are admitted.
    pub(crate) async fn until_entered(&self, item: &str, at_least: u64) {
        let what = format!("{}: {at_least} users are admitted", self.name);
        eventually(Duration::from_secs(60), &what, || async {
            self.counts(item).await.1 >= at_least
        })
        .await;
    }

    /// Pauses the line and returns the number of entries. Waits until the api has refreshed its snapshot,
    /// which it does five times per second.
    pub(crate) async fn hold(&self, item: &str) -> u64 {
        self.admin(Method::POST, &format!("waiting-item/{item}/pause"), Value::Null).await;
        let entered = self.counts(item).await.1;
        eventually(Duration::from_secs(20), "the api returns PAUSED", || async {
            let seen: Value =
                self.http.get(self.line(item)).send().await.unwrap().json().await.unwrap();
            seen["lineState"] == "PAUSED" && seen["enteredCount"] == entered
        })
        .await;
        entered
    }

    pub(crate) async fn close(self) {
        self.shutdown.begin().await;
        self.shutdown.wait(Duration::from_secs(10)).await.unwrap();
    }
}
