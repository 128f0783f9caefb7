//! The api on a real Redis: through an outage, and before the store is there.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use daegi_domain::{ItemChange, ItemName, Settings};
use daegi_runtime::Shutdown;
use daegi_store::{RedisStore, Store};
use daegi_testkit::{Redis, eventually, redis_or_loud};
use serde_json::Value;

use crate::harness::{NOW, SOON, id, line, ticket};
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

/// A pod that runs on this Redis while somebody asks it things; asking ends it.
pub(crate) async fn with_pod(redis: &str, ask: impl AsyncFnOnce(Pod)) {
    let (listeners, people, services) = listeners().await;
    let shutdown = Shutdown::new();
    let running = daegi_api::run(config(&["--store", redis]), listeners, shutdown.clone());
    let asking = async {
        ask(Pod { people, services }).await;
        shutdown.now();
    };
    let (ended, ()) = tokio::join!(running, asking);
    ended.unwrap();
    shutdown.wait(SOON).await.unwrap();
}

/// Where a pod listens.
pub(crate) struct Pod {
    pub(crate) people: SocketAddr,
    services: SocketAddr,
}

impl Pod {
    fn door(&self) -> String {
        format!("http://{}{}", self.people, line("concert"))
    }

    async fn probe(&self, path: &str) -> u16 {
        status(format!("http://{}{path}", self.services)).await
    }

    pub(crate) async fn is_ready(&self) {
        eventually(SOON, "ready", async || self.probe("/readyz").await == 200).await;
    }
}

#[tokio::test]
async fn people_join_poll_and_leave_and_an_outage_is_told_and_survived() {
    let Some(mut redis) = redis_or_loud().await else { return };
    let url = redis.url();
    with_pod(&url, async |pod| {
        pod.is_ready().await;
        put_item(&redis).await;
        let door = pod.door();
        let client = reqwest::Client::new();
        let joined = client.post(&door).header("user-id", "kim").send().await.unwrap();
        assert_eq!(joined.status(), 201);
        let joined: Value = joined.json().await.unwrap();
        let mine = format!(
            "http://{}{}",
            pod.people,
            ticket("concert", joined["token"].as_str().unwrap())
        );
        let polled: Value = reqwest::get(&mine).await.unwrap().json().await.unwrap();
        assert_eq!((&polled["status"], &polled["position"]), (&"WAITING".into(), &1.into()));
        assert_eq!(client.delete(&mine).send().await.unwrap().status(), 204);
        let polled: Value = reqwest::get(&mine).await.unwrap().json().await.unwrap();
        assert_eq!(polled["status"], "LEFT");

        redis.stop();
        eventually(SOON, "told", async || status(mine.clone()).await == 503).await;
        let began = Instant::now();
        let refused = client.post(&door).header("user-id", "lee").send().await.unwrap();
        assert_eq!(refused.status(), 503);
        assert!(refused.headers().contains_key("retry-after"));
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!(pod.probe("/readyz").await, 200);

        redis.start_again().await.unwrap();
        put_item(&redis).await;
        let joins = async || {
            let again = client.post(&door).header("user-id", "kim").send().await.unwrap();
            again.status() == 201
        };
        eventually(SOON, "people join again", joins).await;
    })
    .await;
}

#[tokio::test]
async fn a_process_whose_store_is_away_is_alive_and_not_ready_until_it_comes() {
    let Some(mut redis) = redis_or_loud().await else { return };
    redis.stop();
    let url = redis.url();
    with_pod(&url, async |pod| {
        assert_eq!(pod.probe("/livez").await, 200);
        assert_eq!(pod.probe("/readyz").await, 503);
        assert_eq!(status(pod.door()).await, 503);
        let complete = "/internal/v1/item/concert/entry/complete";
        assert_eq!(pod.probe(complete).await, 503, "not there yet, which is not 404");
        redis.start_again().await.unwrap();
        pod.is_ready().await;
        assert_eq!(status(pod.door()).await, 404);
        assert_eq!(pod.probe(complete).await, 405, "there, for those who POST");
    })
    .await;
}

#[tokio::test]
async fn a_redis_that_hangs_is_told_in_time_and_its_return_is_noticed() {
    let Some(redis) = redis_or_loud().await else { return };
    let url = redis.url();
    with_pod(&url, async |pod| {
        pod.is_ready().await;
        put_item(&redis).await;
        let door = pod.door();
        let client = reqwest::Client::new();
        let join = async |user: &str| {
            let began = Instant::now();
            let answer = client.post(&door).header("user-id", user).send().await.unwrap();
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
        eventually(SOON, "people join again", joins).await;
    })
    .await;
}
