//! Composition: bind, open the store, start, serve.

use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use daegi_domain::{PassKeys, TicketKeys};
use daegi_runtime::http::{
    BindError, HttpService, Limits, MAX_BODY, SwappableService, bind, serve,
};
use daegi_runtime::{Clock, Config, Health, Shutdown, Tracer, health};
use daegi_store::{SharedStore, clock_skew};
use tokio::net::TcpListener;

use crate::endpoints::tickets::fast_path;
use crate::routes::{Listener, router};
use crate::tickets::TicketService;
use crate::warmup::WarmUp;

/// Dependencies of the api, provided by the process it runs in.
pub struct ApiDeps {
    /// The store.
    pub store: SharedStore,
    /// Keys that sign and verify tokens, equal in all pods.
    pub ticket_keys: TicketKeys,
    /// Keys that sign and verify passes, equal in all pods.
    pub pass_keys: PassKeys,
    /// Source of the time that is passed to the store.
    pub clock: Clock,
    /// Limits of one pod.
    pub limits: ApiLimits,
    /// Records spans of joins and ends, unless it is off.
    pub tracer: Tracer,
    /// Becomes ready after the warm-up and stays ready: while the store is unavailable, every pod
    /// responds with 503 and `Retry-After`, which helps clients more than a balancer without pods.
    pub health: health::Component,
}

/// The routers of the api. Merge other routers of the same listener into them, then call
/// [`Api::services`].
pub struct Api {
    /// Router of the public listener.
    pub public: Router,
    /// Router of the internal listener.
    pub internal: Router,
    service: Arc<TicketService>,
}

impl Api {
    /// Returns the services of the public and the internal listener.
    #[must_use]
    pub fn services(self) -> (HttpService, HttpService) {
        let service = self.service;
        let public = HttpService::new(self.public)
            .with_body_limit(public_body_limit)
            .with_fast_path(move |head| fast_path(&service, head));
        (public, HttpService::new(self.internal).with_body_limit(internal_body_limit))
    }
}

/// Maximum body of a join: a user id in JSON. Other public requests have no body.
const JOIN_BODY: usize = 1024;

/// Maximum body of entry requests: a token or a pass in JSON.
const ENTRY_BODY: usize = 4 * 1024;

fn public_body_limit(method: &Method, _: &str) -> usize {
    if method == Method::POST { JOIN_BODY } else { 0 }
}

/// Admin requests, which the all-in-one process serves on the same listener, contain whole items.
fn internal_body_limit(method: &Method, path: &str) -> usize {
    match *method {
        Method::POST if path.starts_with("/internal/v1/") => ENTRY_BODY,
        Method::POST | Method::PUT | Method::PATCH => MAX_BODY,
        _ => 0,
    }
}

/// Builds the api and starts its tasks, including the warm-up, on the shutdown's tracker.
#[must_use]
pub fn start(deps: ApiDeps, shutdown: &Shutdown) -> Api {
    let (items, health) = (deps.store.clone(), deps.health.clone());
    let service = Arc::new(TicketService::new(deps, shutdown));
    let warm_up = WarmUp::new(Arc::clone(&service), items);
    shutdown.spawn("api warm-up", warm_up.run(health, shutdown.token().clone()));
    Api {
        public: router(Listener::Public).with_state(Arc::clone(&service)),
        internal: router(Listener::Internal).with_state(Arc::clone(&service)),
        service,
    }
}

/// Runs the api as a process: opens the store and serves until the shutdown.
///
/// # Errors
/// If the store cannot be used. While it is unreachable, the process retries, alive but not ready.
pub async fn run(
    config: Config,
    listeners: Listeners,
    shutdown: Shutdown,
) -> daegi_store::Result<()> {
    let health = Health::new(&shutdown);
    let part = health.component("api");
    let routers = SwappableRouters::health_only(&health);
    let limits = Limits::from(&config);
    let mut serving = pin!(listeners.serve(&routers, limits, shutdown.clone()));
    let store = tokio::select! {
        store = open(&config) => store?,
        () = &mut serving => return Ok(()),
    };
    let watching = clock_skew::watch(store.clone(), || Clock::system().now_ms());
    shutdown.spawn_until_stopped("clock skew", watching);
    let tracer = Tracer::start(&config, &shutdown);
    let api = start(deps(config, store, tracer, part), &shutdown);
    routers.serve(api, &health);
    serving.await;
    Ok(())
}

fn deps(config: Config, store: SharedStore, tracer: Tracer, health: health::Component) -> ApiDeps {
    tracing::info!(public = %config.public_addr, internal = %config.internal_addr, "api started");
    let limits = ApiLimits::from(&config);
    ApiDeps {
        store,
        ticket_keys: config.secrets.ticket_keys,
        pass_keys: config.secrets.pass_keys,
        clock: Clock::system(),
        limits,
        tracer,
        health,
    }
}

async fn open(config: &Config) -> daegi_store::Result<SharedStore> {
    let (redis, hold) = (config.store.redis(), config.recovery_hold);
    let (partitions, limits) = (config.partitions.into(), config.store_limits);
    daegi_store::open(redis, partitions, config.settings(), hold, limits).await
}

/// The two listeners of the process, bound first so that a port in use is reported first.
#[derive(Debug)]
pub struct Listeners {
    /// For clients.
    pub public: TcpListener,
    /// For services, health and metrics.
    pub internal: TcpListener,
}

/// The services of both listeners. Until the store is open they serve health checks, and 503 for all
/// other requests; then the api, without closing connections.
#[derive(Debug)]
pub struct SwappableRouters {
    public: SwappableService,
    internal: SwappableService,
}

impl Listeners {
    /// Binds both configured addresses.
    ///
    /// # Errors
    /// If an address cannot be bound.
    pub async fn bind(config: &Config) -> Result<Self, BindError> {
        Ok(Self {
            public: bind(config.public_addr, "public-addr").await?,
            internal: bind(config.internal_addr, "internal-addr").await?,
        })
    }

    /// Serves both listeners until the shutdown.
    pub async fn serve(self, routers: &SwappableRouters, limits: Limits, shutdown: Shutdown) {
        let (public, internal) = (routers.public.clone(), routers.internal.clone());
        tokio::join!(
            serve(self.public, public, limits.clone(), shutdown.clone()),
            serve(self.internal, internal, limits, shutdown),
        );
    }
}

impl SwappableRouters {
    /// Creates services that only serve health checks.
    #[must_use]
    pub fn health_only(health: &Health) -> Self {
        let internal = SwappableService::unavailable_except(health.router());
        Self { public: SwappableService::unavailable(), internal }
    }

    /// Replaces both services by the api, and keeps the health checks.
    pub fn serve(&self, mut api: Api, health: &Health) {
        api.internal = api.internal.merge(health.router());
        let (public, internal) = api.services();
        self.public.replace(public);
        self.internal.replace(internal);
    }
}

/// Limits of one pod.
#[derive(Debug, Clone, Copy)]
pub struct ApiLimits {
    /// Maximum streams and WebSockets together; more are refused with 503.
    pub streams: usize,
    /// Maximum long polls; more are answered immediately.
    pub long_polls: usize,
    /// Maximum held connections of one ticket, of all transports together. A newer one ends the oldest.
    pub held_per_ticket: usize,
    /// Maximum cached lines; the line that has been idle the longest is evicted.
    pub cached_lines: usize,
}

impl Default for ApiLimits {
    fn default() -> Self {
        Self { streams: 15_000, long_polls: 15_000, held_per_ticket: 3, cached_lines: 4_096 }
    }
}

impl From<&Config> for ApiLimits {
    fn from(config: &Config) -> Self {
        Self {
            streams: config.max_streams,
            long_polls: config.max_long_polls,
            held_per_ticket: config.max_held_per_ticket,
            cached_lines: config.max_cached_lines,
        }
    }
}
