//! Putting it together: bind, open the store, start, serve.

mod doors;
mod limits;

use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use daegi_domain::{PassKeys, TicketKeys};
use daegi_runtime::http::{Guarded, Limits, MAX_BODY, guarded};
use daegi_runtime::{Clock, Config, Health, Shutdown, Traces, health};
use daegi_store::{SharedStore, clock_skew};

use crate::http::shortcut;
use crate::operations::{Listener, router};
use crate::room::Room;
use crate::warmup;

pub use doors::{Behind, Listeners};
pub use limits::ApiLimits;

/// What the api needs from the process it runs in.
pub struct ApiDeps {
    /// Where lines live.
    pub store: SharedStore,
    /// Sign and verify tickets, the same in the whole fleet.
    pub ticket_keys: TicketKeys,
    /// Sign and verify passes, the same in the whole fleet.
    pub pass_keys: PassKeys,
    /// Tells the time to the store.
    pub clock: Clock,
    /// How much one pod holds for its clients.
    pub limits: ApiLimits,
    /// Makes spans of joins and ends, unless it is off.
    pub traces: Traces,
    /// Turns ready once the warm-up is through, and stays so: while the store is away every pod
    /// answers 503 with `Retry-After`, which tells people more than a balancer without pods.
    pub health: health::Part,
}

/// The api, ready to be served. Neither router is guarded yet: merge what else the listener
/// serves, then call [`Api::guarded`].
pub struct Api {
    /// What people reach.
    pub public: Router,
    /// What only services reach.
    pub internal: Router,
    room: Arc<Room>,
}

impl Api {
    /// What the public and the internal listener serve.
    #[must_use]
    pub fn guarded(self) -> (Guarded, Guarded) {
        let room = self.room;
        let public = guarded(self.public)
            .with_body_limit(public_body_limit)
            .with_shortcut(move |head| shortcut::take(&room, head));
        (public, guarded(self.internal).with_body_limit(internal_body_limit))
    }
}

/// The name of a user, in JSON. Only joins carry a body.
const JOIN_BODY: usize = 1024;

/// A token or a pass, in JSON.
const ENTRY_BODY: usize = 4 * 1024;

fn public_body_limit(method: &Method, _: &str) -> usize {
    if method == Method::POST { JOIN_BODY } else { 0 }
}

/// Admin calls, which the all-in-one serves on the same listener, carry whole items.
fn internal_body_limit(method: &Method, path: &str) -> usize {
    match *method {
        Method::POST if path.starts_with("/internal/v1/") => ENTRY_BODY,
        Method::POST | Method::PUT | Method::PATCH => MAX_BODY,
        _ => 0,
    }
}

/// Builds the api and starts its tasks, the warm-up among them, on the shutdown's tracker.
#[must_use]
pub fn start(deps: ApiDeps, shutdown: &Shutdown) -> Api {
    let health = deps.health.clone();
    let room = Arc::new(Room::new(deps, shutdown));
    shutdown.spawn(
        "api warm-up",
        warmup::until_warm(Arc::clone(&room), health, shutdown.token().clone()),
    );
    Api {
        public: router(Listener::Public).with_state(Arc::clone(&room)),
        internal: router(Listener::Internal).with_state(Arc::clone(&room)),
        room,
    }
}

/// The api as a process of its own: opens the store and serves until the shutdown.
///
/// # Errors
/// If the store cannot be used. A store that is merely away is waited for, alive but not ready.
pub async fn run(
    config: Config,
    listeners: Listeners,
    shutdown: Shutdown,
) -> daegi_store::Result<()> {
    let health = Health::new(&shutdown);
    let part = health.part("api");
    let behind = Behind::starting(&health);
    let limits = Limits::from(&config);
    let mut serving = pin!(listeners.serve(&behind, limits, shutdown.clone()));
    let store = tokio::select! {
        store = open(&config) => store?,
        () = &mut serving => return Ok(()),
    };
    let watching = clock_skew::watch(store.clone(), || Clock::system().now_ms());
    shutdown.spawn_until_stopped("clock skew", watching);
    let traces = Traces::start(&config, &shutdown);
    let api = start(deps(config, store, traces, part), &shutdown);
    behind.open(api, &health);
    serving.await;
    Ok(())
}

fn deps(config: Config, store: SharedStore, traces: Traces, health: health::Part) -> ApiDeps {
    tracing::info!(public = %config.public_addr, internal = %config.internal_addr, "api started");
    let limits = ApiLimits::from(&config);
    ApiDeps {
        store,
        ticket_keys: config.secrets.ticket_keys,
        pass_keys: config.secrets.pass_keys,
        clock: Clock::system(),
        limits,
        traces,
        health,
    }
}

async fn open(config: &Config) -> daegi_store::Result<SharedStore> {
    let (redis, hold) = (config.store.redis(), config.recovery_hold);
    let (partitions, limits) = (config.partitions.into(), config.store_limits);
    daegi_store::open(redis, partitions, config.settings(), hold, limits).await
}
