//! Redis commands per poll.

use std::sync::Arc;
use std::time::Instant;

use daegi_domain::{ItemChange, ItemId, ItemName, PassKeys, Policy, Settings, TicketKeys};
use daegi_runtime::http::{Limits, serve};
use daegi_runtime::{Clock, Health, Shutdown, Tracer};
use daegi_store::{ItemStore, RedisStore, SharedStore};
use futures_util::{StreamExt, stream};

/// Runs one api pod only, so that the commands of a scheduler are not counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_polls_add_no_command_to_redis() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let settings = Settings { token_count_to_move: 10, tick_ms: 1000 };
    let store = RedisStore::open(&redis.url(), 16, settings).await.unwrap();
    let clock = Clock::system();
    let item = ItemChange {
        id: ItemId::parse("concert").unwrap(),
        name: ItemName::parse("concert").unwrap(),
        stock: 5000,
        enabled: true,
        version: None,
        policy: Some(Policy::default()),
    };
    store.put_item(&item, clock.now_ms()).await.unwrap();
    let pod = Pod::start(Arc::new(store), clock).await;
    let tokens = pod.join(1000).await;

    pod.poll(&tokens[..1]).await;
    let (before, started) = (redis.commandstats().await.unwrap(), Instant::now());
    pod.poll(&tokens).await;
    let (after, elapsed) = (redis.commandstats().await.unwrap(), started.elapsed());

    let grown = |command: &str| {
        let count = |stats: &std::collections::HashMap<String, u64>| {
            stats.get(command).copied().unwrap_or(0)
        };
        count(&after) - count(&before)
    };
    // Refresh (5 per second) and liveness flush (1 per second) run independently of polls.
    let scripts = grown("evalsha");
    let background = elapsed.as_millis() as u64 / 200 + elapsed.as_secs() + 3;
    assert!(scripts <= background, "{scripts} scripts, {background} explained by {elapsed:?}");
    for command in ["zrank", "zscore", "zmscore"] {
        assert_eq!(grown(command), 0, "{command} would be a position lookup");
    }
    pod.shutdown.begin().await;
}

struct Pod {
    http: reqwest::Client,
    line: String,
    shutdown: Shutdown,
}

impl Pod {
    async fn start(store: SharedStore, clock: Clock) -> Self {
        let shutdown = Shutdown::new();
        let process = Health::new(&shutdown);
        let health = process.component(daegi_api::COMPONENT);
        let (ticket_keys, pass_keys) = (TicketKeys::generate(), PassKeys::generate());
        let (limits, tracer) = (daegi_api::ApiLimits::default(), Tracer::default());
        let deps = daegi_api::ApiDeps {
            store,
            ticket_keys,
            pass_keys,
            clock,
            limits,
            tracer,
            health,
            trusted_proxies: Default::default(),
            rates: Default::default(),
        };
        let api = daegi_api::start(deps, &shutdown);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let public = api.services(&process).public.unwrap();
        let serving = serve(listener, public, Limits::default(), shutdown.clone());
        shutdown.spawn("public", serving);
        let line = format!("http://{address}/api/v1/item/concert/waiting-queue");
        Self { http: reqwest::Client::new(), line, shutdown }
    }

    async fn join(&self, count: usize) -> Vec<String> {
        let joins = stream::iter(0..count).map(|n| async move {
            let user = format!("user-{n}");
            let request = self.http.post(&self.line).header("user-id", user);
            let ticket: serde_json::Value = request.send().await.unwrap().json().await.unwrap();
            ticket["token"].as_str().unwrap().to_owned()
        });
        joins.buffer_unordered(50).collect().await
    }

    async fn poll(&self, tokens: &[String]) {
        let polls = stream::iter(tokens).map(|token| async move {
            let answer = self.http.get(format!("{}/{token}", self.line)).send().await.unwrap();
            let ticket: serde_json::Value = answer.json().await.unwrap();
            assert_eq!(ticket["status"], "WAITING", "{ticket}");
        });
        polls.buffer_unordered(50).collect::<Vec<()>>().await;
    }
}
