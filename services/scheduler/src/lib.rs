//! The scheduler: admits tickets in order and serves the operators.
//!
//! Any number of replicas run; one of them leads. The crate guarantees:
//!
//! - **One leader at a time, and a stale one is harmless**: the lease elects the leader, and the epoch
//!   that every script checks fences a leader that lost it.
//! - **A tick is one call**: [`Ticker::tick`] runs a whole round at a given time, so that tests run it
//!   without a timer. Apart from direct admissions, only a tick admits tickets.
//! - **Every replica serves operators**, leader or not, and only with the admin token.
//!
//! | module | what lives there |
//! |---|---|
//! | [`tick`] | one round over the active lines: expire, admit, sweep |
//! | [`leader`] | leader election, terms, the interval of ticks, the history of lines |
//! | [`leadership`] | the state of this replica in the election |
//! | [`beacon`] | the rounds of drand that draws wait for |
//! | [`origin_probes`] | probes of the origins of lines with an adaptive pace |
//! | `pace` | what the leader knows of such an origin |
//! | [`relay`] | publishes the outbox to a sink |
//! | [`monitor`] | samples of lines, heartbeat of this replica |
//! | [`access_keeper`] | the file of the block list, expired rules |
//! | [`admin`] | the admin API |
//! | [`console`] | the page that uses it |
//! | [`seed`] | items created at the start if absent |
//! | [`metrics`] | the names of all metrics |

pub mod access_keeper;
pub mod admin;
pub mod beacon;
pub mod console;
mod error;
pub mod leader;
pub mod leadership;
pub mod metrics;
pub mod monitor;
pub mod origin_probes;
mod pace;
pub mod relay;
pub mod seed;
pub mod tick;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use daegi_beacon::RelayClient;
use daegi_bootstrap::{ServiceContext, Services, serve_until_open};
use daegi_domain::TicketKeys;
use daegi_runtime::health::Component;
use daegi_runtime::http::HttpService;
use daegi_runtime::{AdminToken, Clock, Config, Shutdown, Tracer};
use daegi_store::SharedStore;

pub use access_keeper::{AccessKeeper, BlocklistError};
pub use admin::AdminState;
pub use beacon::Beacons;
pub use daegi_bootstrap::Listeners;
pub use error::Error;
pub use leader::{LeaderLoop, MinuteRecorder};
pub use leadership::Leadership;
pub use monitor::LineMonitor;
pub use origin_probes::OriginProbes;
pub use relay::{DiscardSink, EventSink, KafkaSink, RecentEvents, Relay, RelayError, SharedSink};
pub use seed::{SeedError, Seeds};
pub use tick::{TickReport, Ticker};

/// The name of the component in readiness and logs.
pub const COMPONENT: &str = "scheduler";

/// The dependencies of a scheduler.
#[derive(Debug, Clone)]
pub struct SchedulerDeps {
    /// The store.
    pub store: SharedStore,
    /// The bearer token of the admin API.
    pub admin_token: AdminToken,
    /// The time of store calls.
    pub clock: Clock,
    /// Set to ready when the store has replied.
    pub health: Component,
    /// How long the lease of the leader lasts without a renewal.
    pub lease: Duration,
    /// The number of unpublished admission events of a partition at which admission is held.
    pub outbox_max: u64,
    /// How long the minutes of lines are kept; zero if they are not recorded.
    pub history: Duration,
    /// Signs tokens, whose hashes are part of a draw, and invitation codes.
    pub ticket_keys: TicketKeys,
    /// The rounds that draws wait for.
    pub beacons: Arc<Beacons>,
    /// The file of the block list, if there is one.
    pub blocklist: Option<PathBuf>,
    /// Where events go.
    pub sink: SharedSink,
    /// Makes spans of events, unless tracing is off.
    pub tracer: Tracer,
}

/// Starts to lead or stand by, and returns the admin API and the console for the internal listener.
pub fn start(deps: SchedulerDeps, shutdown: &Shutdown) -> Router {
    metrics::describe();
    let leadership = Arc::new(Leadership::new());
    let (store, clock) = (deps.store.clone(), deps.clock.clone());
    let (token, keys) = (deps.admin_token.clone(), deps.ticket_keys.clone());
    let blocklist = deps.blocklist.clone();
    let keeper = AccessKeeper::new(store.clone(), clock.clone(), leadership.clone(), blocklist);
    shutdown.spawn_until_stopped("access list", keeper.run());
    let leader = LeaderLoop::new(deps, leadership.clone());
    let monitor =
        LineMonitor::new(store.clone(), clock.clone(), leadership.clone(), leader.recent());
    let monitor = Arc::new(monitor);
    shutdown.spawn("leader", leader.run(shutdown.clone()));
    shutdown.spawn_until_stopped("monitor", monitor.clone().run());
    let tasks = shutdown.tracker().clone();
    AdminState::new(store, token, keys, clock, leadership, monitor, tasks).router()
}

/// Runs one replica until the shutdown: seeds, leader or standby, admin API, health.
///
/// # Errors
/// If the seed file or the broker addresses are wrong, or the store cannot be used. If the store is
/// unreachable, the process stays alive but not ready and retries.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> Result<(), Error> {
    let seeds = Seeds::from_config(&config)?;
    let opened = serve_until_open(&config, &[COMPONENT], listeners, &shutdown).await?;
    let Some(mut context) = opened else {
        return Ok(());
    };
    seeds.create_missing(&*context.store, context.clock.now_ms()).await?;
    let admin = start(SchedulerDeps::new(&config, &context)?, &shutdown);
    let internal = HttpService::new(context.health.router().merge(admin));
    context.server.replace(Services { public: None, internal });
    context.server.run().await;
    Ok(())
}

impl SchedulerDeps {
    /// Builds the dependencies from a configuration.
    ///
    /// # Errors
    /// If librdkafka rejects the broker addresses; unreachable brokers are waited for. If the machine has no
    /// certificate authorities for `https://` relays of the beacon.
    pub fn new(config: &Config, context: &ServiceContext) -> Result<Self, Error> {
        Ok(Self {
            store: context.store.clone(),
            admin_token: config.secrets.admin_token.clone(),
            clock: context.clock.clone(),
            health: context.health.component(COMPONENT),
            lease: config.lease,
            outbox_max: config.outbox_max,
            history: config.history,
            ticket_keys: config.secrets.ticket_keys.clone(),
            beacons: Arc::new(Beacons::new(RelayClient::new(config.drand_urls.0.clone())?)),
            blocklist: config.blocklist.clone(),
            sink: relay::from_config(config)?,
            tracer: context.tracer.clone(),
        })
    }
}
