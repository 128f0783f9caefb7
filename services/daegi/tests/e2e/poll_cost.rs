//! Redis commands per poll.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use daegi_domain::{
    Drawn, ItemChange, ItemId, ItemName, Opening, OpeningChange, Order, PassKeys, Policy,
    PolicyChange, Reveal, Settings, TicketKeys,
};
use daegi_runtime::http::{Limits, serve};
use daegi_runtime::{Clock, Health, Shutdown, Tracer};
use daegi_store::{
    AdmissionStore, ItemStore, OpeningStore, PolicyUpdateOutcome, RedisStore, SharedStore,
};
use daegi_testkit::Redis;
use futures_util::{StreamExt, stream};

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_polls_add_no_command_to_redis() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let (store, pod) = start(&redis).await;
    store.put_item(&item(), now_ms()).await.unwrap();
    let tokens = pod.join(1000).await;
    pod.poll(&tokens[..1]).await;
    let cost = PollCost::begin(&redis).await;
    pod.poll(&tokens).await;
    cost.assert_none().await;
    pod.shutdown.begin().await;
}

/// The first poll of each ticket after the draw has its rank and costs the store no more than a later one.
#[tokio::test(flavor = "multi_thread")]
async fn polls_right_after_a_draw_add_no_command_to_redis() {
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let (store, pod) = start(&redis).await;
    store.put_item(&item(), now_ms()).await.unwrap();
    let (id, opens_at) = (item().id, now_ms());
    plan_draw(&store, &id, opens_at).await;
    let tokens = pod.join(1000).await;
    let epoch = store.begin_term(now_ms()).await.unwrap();
    store.freeze_cohort(epoch, &id, opens_at).await.unwrap().unwrap();
    let drawn = Drawn { root: [1; 32], beacon: None, seed: [2; 32] };
    assert!(store.open_line(epoch, &id, Some(drawn), opens_at).await.unwrap());

    let cost = PollCost::begin(&redis).await;
    // The pod answers from the lobby until its next refresh.
    let lobby = pod.poll(&tokens).await;
    assert!(
        lobby.iter().all(|ticket| ticket["position"].is_null() || ticket["cohortRank"].is_u64())
    );
    daegi_testkit::eventually(Duration::from_secs(10), "the pod has read the draw", async || {
        pod.poll(&tokens[..1]).await[0]["cohortRank"].is_u64()
    })
    .await;
    let mut ranks: Vec<_> =
        pod.poll(&tokens).await.iter().map(|ticket| ticket["cohortRank"].as_u64()).collect();
    cost.assert_none().await;
    ranks.sort_unstable();
    assert!(ranks.into_iter().eq((1..=1000).map(Some)));
    pod.shutdown.begin().await;
}

/// Starts one api pod only, so that the commands of a scheduler are not counted.
async fn start(redis: &Redis) -> (Arc<RedisStore>, Pod) {
    let settings = Settings { token_count_to_move: 10, tick_ms: 1000 };
    let store = Arc::new(RedisStore::open(&redis.url(), 16, settings).await.unwrap());
    let pod = Pod::start(store.clone(), Clock::system()).await;
    (store, pod)
}

fn now_ms() -> u64 {
    Clock::system().now_ms()
}

fn item() -> ItemChange {
    ItemChange {
        id: ItemId::parse("concert").unwrap(),
        name: ItemName::parse("concert").unwrap(),
        stock: 5000,
        enabled: true,
        version: None,
        policy: Some(Policy::default()),
    }
}

async fn plan_draw(store: &RedisStore, id: &ItemId, opens_at: u64) {
    let opening = Opening { opens_at: Some(opens_at), order: Order::Draw, ..Opening::default() };
    let policy = Policy { opening: Some(opening), ..Policy::default() };
    let (opening, reveal) = (OpeningChange::Replaced, Some(Reveal([3; 32])));
    let change = PolicyChange { policy, opening, reveal };
    let revision = store.item(id).await.unwrap().unwrap().revision;
    let changed = store.set_policy(id, &change, revision, now_ms()).await.unwrap();
    assert!(matches!(changed, PolicyUpdateOutcome::Changed(_)), "{changed:?}");
}

/// The commands of Redis during polls.
struct PollCost<'a> {
    redis: &'a Redis,
    before: HashMap<String, u64>,
    started: Instant,
}

impl<'a> PollCost<'a> {
    async fn begin(redis: &'a Redis) -> Self {
        Self { redis, before: redis.commandstats().await.unwrap(), started: Instant::now() }
    }

    /// Asserts that Redis ran no command that the background work of the pod does not explain.
    async fn assert_none(&self) {
        let (after, elapsed) = (self.redis.commandstats().await.unwrap(), self.started.elapsed());
        let grown = |command: &str| {
            let count = |stats: &HashMap<String, u64>| stats.get(command).copied().unwrap_or(0);
            count(&after) - count(&self.before)
        };
        // Refresh (5 per second) and liveness flush (1 per second) run independently of polls.
        let scripts = grown("evalsha");
        let background = elapsed.as_millis() as u64 / 200 + elapsed.as_secs() + 3;
        assert!(scripts <= background, "{scripts} scripts, {background} explained by {elapsed:?}");
        for command in ["zrank", "zscore", "zmscore"] {
            assert_eq!(grown(command), 0, "{command} would be a position lookup");
        }
    }
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
            widget: None,
            rates: Default::default(),
            keeps_lines: true,
            visits: Default::default(),
            identity: None,
            cors_origins: Default::default(),
            public_url: String::new(),
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

    async fn poll(&self, tokens: &[String]) -> Vec<serde_json::Value> {
        let polls = stream::iter(tokens).map(|token| async move {
            let answer = self.http.get(format!("{}/{token}", self.line)).send().await.unwrap();
            let ticket: serde_json::Value = answer.json().await.unwrap();
            assert_eq!(ticket["status"], "WAITING", "{ticket}");
            ticket
        });
        polls.buffer_unordered(50).collect().await
    }
}
