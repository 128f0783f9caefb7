//! Composition: open the store, start, serve.

use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use axum::routing::any;
use daegi_bootstrap::{Listeners, ServiceContext, Services, serve_until_open};
use daegi_domain::{PassKeys, TicketKeys};
use daegi_runtime::config::{IdentityConfig, Rates, StoreConfig, WidgetConfig};
use daegi_runtime::http::{CorsOrigins, HttpService, MAX_BODY, TrustedProxies};
use daegi_runtime::{Clock, Config, Health, Shutdown, Tracer, health, openapi};
use daegi_store::SharedStore;

use crate::endpoints::{gate, tickets};
use crate::routes;
use crate::tickets::TicketService;
use crate::visits::VisitOptions;
use crate::warmup::WarmUp;

/// The name of the component in readiness and logs.
pub const COMPONENT: &str = "api";

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
    /// Which proxies name the addresses of clients.
    pub trusted_proxies: TrustedProxies,
    /// How often sources, users and tickets may send requests.
    pub rates: Rates,
    /// The widget of lines with `challenge: widget`.
    pub widget: Option<WidgetConfig>,
    /// Whether lines survive a restart of the processes: with Redis, and not in memory. The waiting page says so.
    pub keeps_lines: bool,
    /// How visits are counted.
    pub visits: VisitOptions,
    /// The origins whose pages may call the public listener.
    pub cors_origins: CorsOrigins,
    /// How signed identities are verified; `None` if clients name their user.
    pub identity: Option<IdentityConfig>,
    /// The origin of the waiting page as browsers reach it; empty if it is the one of the site.
    pub public_url: String,
    /// Records spans of joins and ends, unless it is off.
    pub tracer: Tracer,
    /// Becomes ready after the warm-up and stays ready while the store is unavailable, because the
    /// pod then responds with 503 and `Retry-After`. A load balancer without ready pods would not
    /// send `Retry-After`.
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
    cors_origins: CorsOrigins,
}

impl Api {
    /// Returns what the listeners serve, including the routes of `health`.
    #[must_use]
    pub fn services(self, health: &Health) -> Services {
        let (service, filtering) = (Arc::clone(&self.service), Arc::clone(&self.service));
        let guarding = self.service;
        let public = HttpService::new(self.public)
            .with_body_limit(public_body_limit)
            .with_cors(self.cors_origins)
            .with_filter(move |head| filtering.refuse(head))
            .with_fast_path(move |head| tickets::fast_path(&service, head));
        let internal = HttpService::new(self.internal.merge(health.router()))
            .with_fast_path(move |head| gate::fast_path(&guarding, head));
        Services { public: Some(public), internal: internal.with_body_limit(internal_body_limit) }
    }
}

/// Maximum body of a join in bytes: a user id, an invitation code, and the solution of a challenge in JSON, of which the
/// response of a widget takes up to some KiB. `GET`, `HEAD` and `DELETE` have no body; with other
/// methods the router answers 405.
const JOIN_BODY: usize = 4 * 1024;

/// Maximum body of entry requests in bytes: a token or a pass in JSON.
const ENTRY_BODY: usize = 4 * 1024;

fn public_body_limit(method: &Method, _: &str) -> usize {
    match *method {
        Method::GET | Method::HEAD | Method::DELETE => 0,
        _ => JOIN_BODY,
    }
}

/// Returns the body limit of an internal request. Admin requests, which the all-in-one process
/// serves on the same listener, contain whole items and need [`MAX_BODY`].
fn internal_body_limit(method: &Method, path: &str) -> usize {
    match *method {
        Method::POST if path.starts_with("/internal/v1/") => ENTRY_BODY,
        Method::POST | Method::PUT | Method::PATCH => MAX_BODY,
        Method::GET | Method::HEAD | Method::DELETE => 0,
        // The router answers 405.
        _ => JOIN_BODY,
    }
}

/// Builds the api and starts its tasks, including the warm-up, on the shutdown's tracker.
#[must_use]
pub fn start(deps: ApiDeps, shutdown: &Shutdown) -> Api {
    let (items, health) = (deps.store.clone(), deps.health.clone());
    let (history, clock) = (deps.store.clone(), deps.clock.clone());
    let cors_origins = deps.cors_origins.clone();
    let service = Arc::new(TicketService::new(deps, shutdown));
    let visits = Arc::clone(&service.visits);
    shutdown.spawn("api visits", visits.run(history, clock, shutdown.token().clone()));
    let warm_up = WarmUp::new(Arc::clone(&service), items);
    shutdown.spawn("api warm-up", warm_up.run(health, shutdown.token().clone()));
    Api {
        public: openapi::router("", [routes::public()]).with_state(Arc::clone(&service)),
        internal: openapi::router("", [routes::internal()])
            .route(routes::GATE_APPENDED, any(gate::gate))
            .with_state(Arc::clone(&service)),
        service,
        cors_origins,
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
    let opened = serve_until_open(&config, &[COMPONENT], listeners, &shutdown).await?;
    let Some(mut context) = opened else {
        return Ok(());
    };
    let api = start(ApiDeps::new(&config, &context), &shutdown);
    context.server.replace(api.services(&context.health));
    tracing::info!(public = %config.public_addr, internal = %config.internal_addr, "api started");
    context.server.run().await;
    Ok(())
}

impl ApiDeps {
    /// Builds the dependencies from a configuration.
    #[must_use]
    pub fn new(config: &Config, context: &ServiceContext) -> Self {
        Self {
            store: context.store.clone(),
            ticket_keys: config.secrets.ticket_keys.clone(),
            pass_keys: config.secrets.pass_keys.clone(),
            clock: context.clock.clone(),
            limits: ApiLimits::from(config),
            trusted_proxies: config.trusted_proxies.clone(),
            rates: config.rates,
            widget: config.widget.clone(),
            keeps_lines: config.store != StoreConfig::Memory,
            visits: VisitOptions {
                country_header: config.country_header.clone(),
                retention: config.history,
            },
            cors_origins: config.cors_origins.clone(),
            identity: config.identity.clone(),
            public_url: config.public_url.clone(),
            tracer: context.tracer.clone(),
            health: context.health.component(COMPONENT),
        }
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
    /// Zero bits of a proof of work, where a policy asks for one.
    pub challenge_bits: u8,
    /// Challenges that a source gets within about a minute before they become harder.
    pub challenge_share: u32,
    /// Maximum additional bits of a source.
    pub challenge_extra_bits: u8,
    /// Maximum cached lines; the line that has been idle the longest is evicted.
    pub cached_lines: usize,
}

impl Default for ApiLimits {
    fn default() -> Self {
        Self {
            streams: 15_000,
            long_polls: 15_000,
            held_per_ticket: 3,
            challenge_bits: 18,
            challenge_share: 100,
            challenge_extra_bits: 3,
            cached_lines: 4_096,
        }
    }
}

impl From<&Config> for ApiLimits {
    fn from(config: &Config) -> Self {
        Self {
            streams: config.max_streams,
            long_polls: config.max_long_polls,
            held_per_ticket: config.max_held_per_ticket,
            challenge_bits: config.challenge_bits,
            challenge_share: config.challenge_share,
            challenge_extra_bits: config.challenge_extra_bits,
            cached_lines: config.max_cached_lines,
        }
    }
}
