//! One api on one store, with helpers for tests.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::Response;
use daegi_api::{ApiDeps, ApiLimits, VisitOptions};
use daegi_domain::{ItemChange, ItemId, ItemName, Number, PassKeys, Policy, Settings, TicketKeys};
use daegi_runtime::config::{Rates, WidgetConfig};
use daegi_runtime::http::{HttpService, TrustedProxies};
use daegi_runtime::{Clock, Health, Shutdown, Tracer};
use daegi_store::{AdmissionStore, ItemStore};
use daegi_testkit::eventually;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::spy_store::SpyStore;

pub(crate) const NOW: u64 = 1_800_000_000_000;
/// Deadline of conditions that tests wait for; no test sleeps that long.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum age of a ticket.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(86_400);
/// Few, so that a test can open all of them.
pub(crate) const MAX_STREAMS: usize = 40;
pub(crate) const MAX_CACHED_LINES: usize = 50;
/// More connections of one ticket than tests open.
const LIMITS: ApiLimits = ApiLimits {
    streams: MAX_STREAMS,
    long_polls: 1000,
    held_per_ticket: 1000,
    challenge_bits: 8,
    challenge_share: 100,
    challenge_extra_bits: 3,
    cached_lines: MAX_CACHED_LINES,
};

/// Without counts of visits, which would be written in the background.
const NO_VISITS: VisitOptions = VisitOptions { country_header: None, retention: Duration::ZERO };

pub(crate) struct Harness {
    pub(crate) store: SpyStore,
    pub(crate) clock: Clock,
    pub(crate) keys: TicketKeys,
    pub(crate) health: Health,
    pub(crate) shutdown: Shutdown,
    pub(crate) public: HttpService,
    internal: HttpService,
}

/// A response with its complete body.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl TestResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts a problem (RFC 9457) with this status and code.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["type"], format!("/docs#{code}"));
        assert_eq!(problem["status"], status);
    }
}

impl Harness {
    /// Starts an api that has not warmed up yet.
    pub(crate) fn cold() -> Self {
        Self::build(LIMITS, Rates::default(), TrustedProxies::default(), None, NO_VISITS)
    }

    /// Starts a warm api with one open item, which counts visits.
    pub(crate) async fn with_visits(item: &str, visits: VisitOptions) -> Self {
        let (rates, proxies) = (Rates::default(), TrustedProxies::default());
        let harness = Self::build(LIMITS, rates, proxies, None, visits);
        harness.wait_until_ready().await;
        harness.put_item(item, 1000, true).await;
        harness
    }

    /// Starts a warm api with one open item, these limits and rates, and this widget.
    pub(crate) async fn with_challenges(
        item: &str,
        change: impl FnOnce(&mut ApiLimits),
        rates: Rates,
        widget: Option<WidgetConfig>,
    ) -> Self {
        let mut limits = LIMITS;
        change(&mut limits);
        let harness = Self::build(limits, rates, TrustedProxies::default(), widget, NO_VISITS);
        harness.wait_until_ready().await;
        harness.put_item(item, 1000, true).await;
        harness
    }

    /// Starts a warm api with one open item and this limit of connections per ticket.
    pub(crate) async fn with_held_per_ticket(item: &str, held_per_ticket: usize) -> Self {
        let limits = ApiLimits { held_per_ticket, long_polls: 10, ..LIMITS };
        let harness =
            Self::build(limits, Rates::default(), TrustedProxies::default(), None, NO_VISITS);
        harness.wait_until_ready().await;
        harness.put_item(item, 1000, true).await;
        harness
    }

    /// Starts a warm api with one open item and these rates.
    pub(crate) async fn with_rates(item: &str, rates: Rates) -> Self {
        Self::behind_proxies(item, rates, TrustedProxies::default()).await
    }

    /// The same behind proxies.
    pub(crate) async fn behind_proxies(item: &str, rates: Rates, proxies: TrustedProxies) -> Self {
        let harness = Self::build(LIMITS, rates, proxies, None, NO_VISITS);
        harness.wait_until_ready().await;
        harness.put_item(item, 1000, true).await;
        harness
    }

    /// Starts a warm api with one open item and these changes of its dependencies.
    pub(crate) async fn with(item: &str, change: impl FnOnce(&mut ApiDeps)) -> Self {
        let harness = Self::build_with(change);
        harness.wait_until_ready().await;
        harness.put_item(item, 1000, true).await;
        harness
    }

    fn build(
        limits: ApiLimits,
        rates: Rates,
        trusted_proxies: TrustedProxies,
        widget: Option<WidgetConfig>,
        visits: VisitOptions,
    ) -> Self {
        Self::build_with(|deps| {
            (deps.limits, deps.rates) = (limits, rates);
            (deps.trusted_proxies, deps.widget, deps.visits) = (trusted_proxies, widget, visits);
        })
    }

    fn build_with(change: impl FnOnce(&mut ApiDeps)) -> Self {
        let settings = Settings { token_count_to_move: 10, tick_ms: 1000 };
        let (store, clock) = (SpyStore::new(settings), Clock::manual(NOW));
        let (shutdown, keys) = (Shutdown::new(), TicketKeys::generate());
        let keys = keys.with_max_age(MAX_AGE.as_millis() as u64);
        let health = Health::new(&shutdown);
        let mut deps = ApiDeps {
            store: Arc::clone(&store.0) as _,
            ticket_keys: keys.clone(),
            pass_keys: PassKeys::generate(),
            clock: clock.clone(),
            limits: LIMITS,
            trusted_proxies: TrustedProxies::default(),
            rates: Rates::default(),
            widget: None,
            keeps_lines: true,
            visits: NO_VISITS,
            identity: None,
            cors_origins: Default::default(),
            public_url: String::new(),
            tracer: Tracer::default(),
            health: health.component("api"),
        };
        change(&mut deps);
        let services = daegi_api::start(deps, &shutdown).services(&health);
        let (public, internal) = (services.public.unwrap(), services.internal);
        Self { store, clock, keys, health, shutdown, public, internal }
    }

    /// Starts a warm api with one open item.
    pub(crate) async fn with_item(item: &str) -> Self {
        let harness = Self::cold();
        harness.wait_until_ready().await;
        harness.put_item(item, 1000, true).await;
        harness
    }

    pub(crate) async fn wait_until_ready(&self) {
        eventually(TEST_TIMEOUT, "the api is ready", async || self.health.check().is_ok()).await;
    }

    pub(crate) async fn put_item(&self, item: &str, stock: u32, enabled: bool) {
        self.put(item, stock, enabled, None).await;
    }

    pub(crate) async fn put(&self, item: &str, stock: u32, enabled: bool, policy: Option<Policy>) {
        let name = ItemName::parse("A concert").unwrap();
        let change = ItemChange { id: id(item), name, stock, enabled, version: None, policy };
        self.store.put_item(&change, self.clock.now_ms()).await.unwrap();
    }

    /// Admits tickets, as the leader does.
    pub(crate) async fn admit(&self, item: &str, count: u32) {
        let epoch = self.store.begin_term(0).await.unwrap();
        let (now, mut left) = (self.clock.now_ms(), count);
        while left > 0 {
            let done = self.store.admit(epoch, &id(item), left, 0, 1_000_000, now).await.unwrap();
            assert!(done.admitted > 0, "{done:?}");
            left -= done.admitted;
        }
    }

    /// Returns a response whose body has not been read.
    pub(crate) async fn raw(&self, request: Request<Body>) -> Response {
        let is_internal =
            ["/internal", "/gate"].iter().any(|path| request.uri().path().starts_with(path));
        let router = if is_internal { &self.internal } else { &self.public };
        router.handle(request).await
    }

    pub(crate) async fn call(&self, request: Request<Body>) -> TestResponse {
        let (parts, body) = self.raw(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        TestResponse { status: parts.status, headers: parts.headers, text }
    }

    pub(crate) async fn get(&self, uri: &str) -> TestResponse {
        self.call(request(Method::GET, uri, &[], "")).await
    }

    pub(crate) async fn post(&self, uri: &str, json: &str) -> TestResponse {
        self.call(request(Method::POST, uri, &[("content-type", "application/json")], json)).await
    }

    pub(crate) async fn join(&self, item: &str, user: &str) -> TestResponse {
        self.call(request(Method::POST, &line(item), &[("user-id", user)], "")).await
    }

    /// Joins a user and returns their token.
    pub(crate) async fn token(&self, item: &str, user: &str) -> String {
        self.join(item, user).await.json()["token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn poll(&self, item: &str, token: &str) -> TestResponse {
        self.get(&ticket(item, token)).await
    }

    pub(crate) async fn leave(&self, item: &str, token: &str) -> TestResponse {
        self.call(request(Method::DELETE, &ticket(item, token), &[], "")).await
    }

    /// Polls until the ticket has this status.
    pub(crate) async fn until_status(&self, item: &str, token: &str, status: &str) -> Value {
        eventually(TEST_TIMEOUT, status, async || {
            let ticket = self.poll(item, token).await.json();
            (ticket["status"] == status).then_some(ticket)
        })
        .await
    }

    pub(crate) fn number(&self, item: &str, token: &str) -> Number {
        self.keys.verify(&id(item), token).unwrap().number
    }

    /// Stops the api and asserts that no task is left.
    pub(crate) async fn end(self) {
        self.shutdown.stop_now();
        self.shutdown.wait(TEST_TIMEOUT).await.unwrap();
    }
}

pub(crate) fn id(item: &str) -> ItemId {
    ItemId::parse(item).unwrap()
}

pub(crate) fn line(item: &str) -> String {
    format!("/api/v1/item/{item}/waiting-queue")
}

pub(crate) fn ticket(item: &str, token: &str) -> String {
    format!("{}/{token}", line(item))
}

pub(crate) fn request(
    method: Method,
    uri: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Request<Body> {
    let request = Request::builder().method(method).uri(uri);
    let with = |request: axum::http::request::Builder, (name, value): &(&str, &str)| {
        request.header(*name, *value)
    };
    let request = headers.iter().fold(request, with);
    request.body(Body::from(body.to_owned())).unwrap()
}
