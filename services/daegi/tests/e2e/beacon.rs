//! A draw with a beacon, from the plan to `daegi verify draw`: api, leader and a relay of drand, on both stores.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use daegi_domain::{PassKeys, Settings, TicketKeys, rfc3339, round_published_at};
use daegi_runtime::http::{HttpService, Limits, serve};
use daegi_runtime::{AdminToken, Clock, Health, Shutdown, Tracer};
use daegi_scheduler::{DiscardSink, SchedulerDeps};
use daegi_store::{MemoryStore, RedisStore, SharedStore};
use daegi_testkit::eventually;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::verify::{text, verify};

/// A round of quicknet whose signature `docs/DRAW.md` has.
const ROUND: u64 = 657_413;
const SIGNATURE: &str = "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be\
    41076862b98fad56e91a6b85b89cd97b";

const SETTINGS: Settings = Settings { token_count_to_move: 10, tick_ms: 50 };
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
const ADMIN_TOKEN: &str = "the-token-of-the-operator";

/// An api and a scheduler whose clock stands shortly before the round.
struct Fleet {
    http: Client,
    public: String,
    admin: String,
    clock: Clock,
    shutdown: Shutdown,
}

impl Fleet {
    async fn start(store: SharedStore) -> Self {
        let (shutdown, clock) =
            (Shutdown::new(), Clock::manual(round_published_at(ROUND) - 70_000));
        let health = Health::new(&shutdown);
        let keys = TicketKeys::generate();
        let api = daegi_api::ApiDeps {
            store: store.clone(),
            ticket_keys: keys.clone(),
            pass_keys: PassKeys::generate(),
            clock: clock.clone(),
            limits: daegi_api::ApiLimits::default(),
            trusted_proxies: Default::default(),
            widget: None,
            rates: Default::default(),
            keeps_lines: true,
            visits: Default::default(),
            identity: None,
            cors_origins: Default::default(),
            public_url: String::new(),
            tracer: Tracer::default(),
            health: health.component("api"),
        };
        let path = format!("/{}/public/{ROUND}", daegi_beacon::QUICKNET_HASH);
        let answer = async || format!(r#"{{"round":{ROUND},"signature":"{SIGNATURE}"}}"#);
        let relay =
            Self::serve(HttpService::new(Router::new().route(&path, get(answer))), &shutdown);
        let relay = daegi_beacon::RelayClient::new(vec![relay.await.parse().unwrap()]).unwrap();
        let scheduler = SchedulerDeps {
            store,
            admin_token: AdminToken::parse(ADMIN_TOKEN).unwrap(),
            clock: clock.clone(),
            health: health.component("scheduler"),
            lease: Duration::from_secs(3),
            outbox_max: 1_000,
            history: Duration::ZERO,
            ticket_keys: keys,
            beacons: Arc::new(daegi_scheduler::Beacons::new(relay)),
            blocklist: None,
            sink: Arc::new(DiscardSink),
            tracer: Tracer::default(),
        };
        let public = daegi_api::start(api, &shutdown).services(&health).public.unwrap();
        let admin = HttpService::new(daegi_scheduler::start(scheduler, &shutdown));
        let (public, admin) =
            (Self::serve(public, &shutdown).await, Self::serve(admin, &shutdown).await);
        Self { http: Client::new(), public, admin, clock, shutdown }
    }

    async fn serve(service: HttpService, shutdown: &Shutdown) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let serving = serve(listener, service, Limits::default(), shutdown.clone());
        shutdown.spawn("server", serving);
        url
    }

    async fn create(&self, policy: Value) -> Value {
        let url = format!("{}/internal/admin/v1/waiting-item", self.admin);
        let body =
            json!({"itemId": "concert", "itemName": "A", "remainCount": 100, "policy": policy});
        let request = self.http.request(Method::POST, url).bearer_auth(ADMIN_TOKEN).json(&body);
        request.send().await.unwrap().json().await.unwrap()
    }

    async fn line(&self, call: &str) -> Value {
        let url = format!("{}/api/v1/item/concert/waiting-queue{call}", self.public);
        self.http.get(url).send().await.unwrap().json().await.unwrap()
    }

    async fn join(&self, user: &str) -> String {
        let url = format!("{}/api/v1/item/concert/waiting-queue", self.public);
        let response = self.http.post(url).header("user-id", user).send().await.unwrap();
        let ticket: Value = response.json().await.unwrap();
        ticket["token"].as_str().unwrap_or_else(|| panic!("{ticket}")).to_owned()
    }
}

async fn a_draw_is_checked_by_its_users(store: SharedStore) {
    let fleet = Fleet::start(store).await;
    let opens_at = rfc3339(round_published_at(ROUND) - 10_000);
    let opening = json!({"opensAt": opens_at, "order": "draw", "beacon": {"kind": "drand"}});
    let created = fleet.create(json!({"opening": opening})).await;
    assert_eq!(created["draw"]["beacon"]["round"], ROUND, "{created}");
    let mut tokens = Vec::new();
    for n in 0..5 {
        tokens.push(fleet.join(&format!("u{n}")).await);
    }
    let announced = fleet.line("/draw").await;
    assert_eq!(
        (&announced["state"], &announced["beaconRound"]),
        (&json!("COMMITTED"), &json!(ROUND))
    );

    fleet.clock.advance(Duration::from_secs(60));
    let frozen = async || fleet.line("/draw").await["frozen"]["cohortSize"] == 5;
    eventually(TEST_TIMEOUT, "the cohort is fixed", frozen).await;
    let frozen = fleet.line("/draw").await["frozen"].clone();
    let late = fleet.join("late").await;
    assert_eq!(fleet.line("").await["lineState"], "LOBBY");

    fleet.clock.advance(Duration::from_secs(10));
    let opened = async || fleet.line("").await["lineState"] == "OPEN";
    eventually(TEST_TIMEOUT, "the line opens with the round", opened).await;
    for token in tokens.iter().chain([&late]) {
        let record = fleet.line(&format!("/draw?token={token}")).await;
        assert_eq!(record["commitment"], announced["commitment"]);
        assert_eq!(record["cohortRoot"], frozen["cohortRoot"], "as it was before the round");
        let output = verify(&["draw", "-", "--token", token], &record.to_string());
        let lines = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{lines}");
        assert!(lines.contains("ok    signature"), "{lines}");
        let mut altered = record.clone();
        altered["beaconRound"] = json!(ROUND + 1);
        let output = verify(&["draw", "-", "--token", token], &altered.to_string());
        assert!(text(&output.stdout).contains("FAILS signature"));
    }
    fleet.shutdown.begin().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draw_with_a_beacon_is_verified_from_its_public_record() {
    a_draw_is_checked_by_its_users(Arc::new(MemoryStore::new(4, SETTINGS))).await;
    let Some(redis) = daegi_testkit::redis_or_skip().await else { return };
    let store = RedisStore::open(&redis.url(), 4, SETTINGS).await.unwrap();
    a_draw_is_checked_by_its_users(Arc::new(store)).await;
}
