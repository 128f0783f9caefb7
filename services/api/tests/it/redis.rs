//! The api on a real Redis: during an outage, and before the store is reachable.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use daegi_domain::{ItemChange, ItemName, Settings};
use daegi_runtime::Shutdown;
use daegi_store::{ItemStore, RedisStore};
use daegi_testkit::{Redis, eventually, redis_or_skip};
use serde_json::Value;

use crate::harness::{NOW, TEST_TIMEOUT, id, line, ticket};
use crate::process::{config, listeners, status};

pub(crate) const SETTINGS: Settings = Settings { token_count_to_move: 10, tick_ms: 1000 };

/// Creates an item as the scheduler would.
async fn put_item(redis: &Redis) {
    let store = RedisStore::open(&redis.url(), 16, SETTINGS).await.unwrap();
    let name = ItemName::parse("A concert").unwrap();
    let id = id("concert");
    let change = ItemChange { id, name, stock: 5, enabled: true, version: None, policy: None };
    store.put_item(&change, NOW).await.unwrap();
}

/// Runs a pod on this Redis until `test` returns.
pub(crate) async fn with_pod(redis: &str, test: impl AsyncFnOnce(Pod)) {
    let (listeners, public, internal) = listeners().await;
    let shutdown = Shutdown::new();
    let running = daegi_api::run(config(&["--store", redis]), listeners, shutdown.clone());
    let testing = async {
        test(Pod { public, internal }).await;
        shutdown.stop_now();
    };
    let (ended, ()) = tokio::join!(running, testing);
    ended.unwrap();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

/// Where a pod listens.
pub(crate) struct Pod {
    pub(crate) public: SocketAddr,
    internal: SocketAddr,
}

impl Pod {
    fn line_url(&self) -> String {
        format!("http://{}{}", self.public, line("concert"))
    }

    async fn probe(&self, path: &str) -> u16 {
        status(format!("http://{}{path}", self.internal)).await
    }

    pub(crate) async fn wait_until_ready(&self) {
        eventually(TEST_TIMEOUT, "ready", async || self.probe("/readyz").await == 200).await;
    }
}

#[tokio::test]
async fn clients_join_poll_and_leave_and_the_api_survives_an_outage() {
    let Some(mut redis) = redis_or_skip().await else { return };
    let url = redis.url();
    with_pod(&url, async |pod| {
        pod.wait_until_ready().await;
        put_item(&redis).await;
        let line_url = pod.line_url();
        let client = reqwest::Client::new();
        let joined = client.post(&line_url).header("user-id", "kim").send().await.unwrap();
        assert_eq!(joined.status(), 201);
        let joined: Value = joined.json().await.unwrap();
        let mine = format!(
            "http://{}{}",
            pod.public,
            ticket("concert", joined["token"].as_str().unwrap())
        );
        let polled: Value = reqwest::get(&mine).await.unwrap().json().await.unwrap();
        assert_eq!((&polled["status"], &polled["position"]), (&"WAITING".into(), &1.into()));
        assert_eq!(client.delete(&mine).send().await.unwrap().status(), 204);
        let polled: Value = reqwest::get(&mine).await.unwrap().json().await.unwrap();
        assert_eq!(polled["status"], "LEFT");

        redis.stop();
        eventually(TEST_TIMEOUT, "the outage is reported", async || {
            status(mine.clone()).await == 503
        })
        .await;
        let began = Instant::now();
        let refused = client.post(&line_url).header("user-id", "lee").send().await.unwrap();
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!(pod.probe("/readyz").await, 200);

        redis.start_again().await.unwrap();
        put_item(&redis).await;
        let joins = async || {
            let again = client.post(&line_url).header("user-id", "kim").send().await.unwrap();
            again.status() == 201
        };
        eventually(TEST_TIMEOUT, "joins succeed again", joins).await;
    })
    .await;
}

#[tokio::test]
async fn a_process_without_its_store_is_alive_and_not_ready() {
    let Some(mut redis) = redis_or_skip().await else { return };
    redis.stop();
    let url = redis.url();
    with_pod(&url, async |pod| {
        assert_eq!(pod.probe("/livez").await, 200);
        assert_eq!(pod.probe("/readyz").await, 503);
        assert_eq!(status(pod.line_url()).await, 503);
        let complete = "/internal/v1/item/concert/entry/complete";
        assert_eq!(pod.probe(complete).await, 503, "not there yet, which is not 404");
        redis.start_again().await.unwrap();
        pod.wait_until_ready().await;
        assert_eq!(status(pod.line_url()).await, 404);
        assert_eq!(pod.probe(complete).await, 405, "there, for those who POST");
    })
    .await;
}

#[tokio::test]
async fn a_hanging_redis_is_reported_in_time_and_its_return_is_noticed() {
    let Some(redis) = redis_or_skip().await else { return };
    let url = redis.url();
    with_pod(&url, async |pod| {
        pod.wait_until_ready().await;
        put_item(&redis).await;
        let line_url = pod.line_url();
        let client = reqwest::Client::new();
        let join = async |user: &str| {
            let began = Instant::now();
            let answer = client.post(&line_url).header("user-id", user).send().await.unwrap();
            (answer, began.elapsed())
        };
        assert_eq!(join("kim").await.0.status(), 201);

        redis.pause().unwrap();
        for _ in 0..5 {
            let (refused, took) = join("lee").await;
            assert_eq!(refused.status(), 503);
            assert!(refused.headers().contains_key("retry-after"));
            assert!(took < Duration::from_secs(2), "{took:?}");
        }

        redis.resume().unwrap();
        // Perhaps with the place that was given when it woke up.
        let joins = async || join("lee").await.0.status().is_success();
        eventually(TEST_TIMEOUT, "joins succeed again", joins).await;
    })
    .await;
}
