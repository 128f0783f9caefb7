//! The scheduler: lets people in, in order, and serves the operators.
//!
//! Any number of replicas run; one of them leads. The crate promises:
//!
//! - **One leader at a time, and a stale one is harmless**: the lease keeps leaders out of each
//!   other's way, the epoch inside every script makes one who lost it change nothing.
//! - **A tick is one step**: [`Ticker::tick`] does a whole round at a moment given from outside,
//!   so tests step it without a timer. Nothing else decides who is let in.
//! - **Operators are served by every replica**, leader or not, and by nobody without the token.
//!
//! | module | what lives there |
//! |---|---|
//! | [`tick`] | one round over the active lines: expire, admit, sweep |
//! | [`leader`] | the lease, the terms, the pace of ticks |
//! | [`leadership`] | what this replica knows about who leads |
//! | [`relay`] | how events leave the outbox |
//! | [`lookout`] | what lines were like lately, and which processes there are |
//! | [`admin`] | the admin API |
//! | [`console`] | the page that uses it |
//! | [`seed`] | items created if absent at the start |
//! | [`meters`] | the names of all metrics |

pub mod admin;
pub mod console;
mod error;
pub mod leader;
pub mod leadership;
pub mod lookout;
pub mod meters;
pub mod relay;
pub mod seed;
pub mod tick;
mod trouble;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use daegi_runtime::health::Part;
use daegi_runtime::http::{Limits, Replaceable, guarded, serve};
use daegi_runtime::{AdminToken, Clock, Config, Health, Shutdown, Traces};
use daegi_store::{SharedStore, clock_skew};
use tokio::net::TcpListener;

pub use admin::Admin;
pub use error::Error;
pub use leader::Leader;
pub use leadership::Leadership;
pub use lookout::Lookout;
pub use relay::{Outlet, Recent, Relay, RelayError};
pub use seed::{SeedError, Seeds};
pub use tick::{TickReport, Ticker};

/// What a scheduler works with.
#[derive(Debug, Clone)]
pub struct SchedulerDeps {
    /// Where the lines live.
    pub store: SharedStore,
    /// Opens the admin API.
    pub admin_token: AdminToken,
    /// Tells the store the time.
    pub clock: Clock,
    /// Ready once the store has answered.
    pub health: Part,
    /// How long a leader leads without renewing.
    pub lease: Duration,
    /// With how many unpublished events admission pauses.
    pub outbox_max: u64,
    /// Where events go.
    pub outlet: Outlet,
    /// Makes spans of events, unless it is off.
    pub traces: Traces,
}

/// Starts to lead or stand by, and returns the admin API and the console for the internal
/// listener.
pub fn start(deps: SchedulerDeps, shutdown: &Shutdown) -> Router {
    let leadership = Arc::new(Leadership::new());
    let (store, clock, token) = (deps.store.clone(), deps.clock.clone(), deps.admin_token.clone());
    let leader = Leader::new(deps, leadership.clone());
    let lookout = Lookout::new(store.clone(), clock.clone(), leadership.clone(), leader.recent());
    let lookout = Arc::new(lookout);
    shutdown.spawn("leader", leader.run(shutdown.clone()));
    shutdown.spawn_until_stopped("lookout", lookout.clone().run());
    let tasks = shutdown.tracker().clone();
    Admin::new(store, token, clock, leadership, lookout, tasks).router()
}

/// Runs one replica until the shutdown: seeds, leader or standby, admin API, health.
///
/// # Errors
/// If the seed file or the brokers' addresses are wrong, or the store cannot be used. A store that is merely away is waited
/// for, alive but not ready.
pub async fn run(config: Config, listener: TcpListener, shutdown: Shutdown) -> Result<(), Error> {
    let seeds = Seeds::of(&config)?;
    let health = Health::new(&shutdown);
    let part = health.part("scheduler");
    let door = Replaceable::starting_with(health.router());
    let limits = Limits::from(&config);
    let mut serving = pin!(serve(listener, door.clone(), limits, shutdown.clone()));
    let (redis, hold) = (config.store.redis(), config.recovery_hold);
    let (partitions, limits) = (config.partitions.into(), config.store_limits);
    let opening = daegi_store::open(redis, partitions, config.settings(), hold, limits);
    let store = tokio::select! {
        store = opening => store?,
        () = &mut serving => return Ok(()),
    };
    let clock = Clock::system();
    let watching = clock_skew::watch(store.clone(), || Clock::system().now_ms());
    shutdown.spawn_until_stopped("clock skew", watching);
    seeds.plant(&*store, clock.now_ms()).await?;
    let traces = Traces::start(&config, &shutdown);
    let deps = SchedulerDeps::new(&config, store, clock, traces, part)?;
    door.replace(guarded(health.router().merge(start(deps, &shutdown))));
    serving.await;
    Ok(())
}

impl SchedulerDeps {
    /// What a configuration says, with what the process has built.
    ///
    /// # Errors
    /// If librdkafka refuses the brokers' addresses. Brokers that are away are waited for.
    pub fn new(
        config: &Config,
        store: SharedStore,
        clock: Clock,
        traces: Traces,
        health: Part,
    ) -> Result<Self, Error> {
        Ok(Self {
            store,
            admin_token: config.secrets.admin_token.clone(),
            clock,
            health,
            lease: config.lease,
            outbox_max: config.outbox_max,
            outlet: Outlet::of(config)?,
            traces,
        })
    }
}
