//! The whole waiting room in one process: nothing but composition.
//!
//! All roles share one store and two ports. Without any configuration the store is memory, the
//! broker is embedded, the secrets are made up and there is a demo item, so `cargo run --release` is a working waiting
//! room that says how to try it.
//!
//! | module | what lives there |
//! |---|---|
//! | [`banner`] | what a person is told who has just started it |
//! | [`demo`] | the item they find |
//! | [`circle`] | what `--demo` adds: the services around a waiting room, and a crowd |

pub mod banner;
pub mod circle;
pub mod demo;
mod error;

use std::io::Write;
use std::pin::pin;

use daegi_api::{Api, ApiDeps, ApiLimits, Behind};
use daegi_consumer::ConsumerDeps;
use daegi_domain::ItemId;
use daegi_kafka::EmbeddedBroker;
use daegi_neighbours::Kafka;
use daegi_runtime::health::Part;
use daegi_runtime::http::Limits;
use daegi_runtime::{Clock, Config, Health, KafkaConfig, Shutdown, StoreConfig, Traces};
use daegi_scheduler::{SchedulerDeps, Seeds};
use daegi_store::{SharedStore, clock_skew};

use banner::Banner;
use circle::Circle;
pub use daegi_api::Listeners;
pub use error::Error;

/// What a role answers at its start.
type Started<T> = Result<T, daegi_scheduler::Error>;

/// Runs every role until the shutdown.
///
/// # Errors
/// If the seed file is wrong or the store cannot be used. A store that is merely away is waited
/// for, alive but not ready.
pub async fn run(
    mut config: Config,
    listeners: Listeners,
    shutdown: Shutdown,
) -> Result<(), Error> {
    let seeds = Seeds::of(&config).map_err(daegi_scheduler::Error::from)?;
    let _broker = embedded(&mut config)?;
    let health = Health::new(&shutdown);
    let parts = Parts::of(&health);
    let behind = Behind::starting(&health);
    let mut banner = Banner::new(&config, &listeners);
    let circle = neighbours(&config, &listeners).await?;
    banner.order_desk = circle.as_ref().map(|circle| circle.order_desk.clone());
    let mut serving = pin!(listeners.serve(&behind, Limits::from(&config), shutdown.clone()));
    let (redis, hold) = (config.store.redis(), config.recovery_hold);
    let (partitions, limits) = (config.partitions.into(), config.store_limits);
    let opening = daegi_store::open(redis, partitions, config.settings(), hold, limits);
    let store = tokio::select! {
        store = opening => store.map_err(daegi_scheduler::Error::from)?,
        () = &mut serving => return Ok(()),
    };
    let clock = Clock::system();
    let watching = clock_skew::watch(store.clone(), || Clock::system().now_ms());
    shutdown.spawn_until_stopped("clock skew", watching);
    banner.item = stock_up(&config, &store, &seeds, &clock).await?;
    warn_of_generated_secrets(&config);
    let mut api = start(&config, store, clock, parts, &shutdown)?;
    let Some(circle) = circle else {
        behind.open(api, &health);
        welcome(&banner);
        serving.await;
        return Ok(());
    };
    api.public = api.public.merge(circle.shop().router());
    behind.open(api, &health);
    welcome(&banner);
    let (view, neighbours) = circle.start(&shutdown);
    view.narrate(&shutdown);
    tokio::join!(serving, neighbours.gone());
    Ok(())
}

/// The neighbours of the demo, if it is asked for.
async fn neighbours(config: &Config, listeners: &Listeners) -> Result<Option<Circle>, Error> {
    let Some(brokers) = config.kafka.brokers().filter(|_| config.demo) else { return Ok(None) };
    let kafka = Kafka { brokers: brokers.to_owned(), topics: config.topics.clone() };
    let api = banner::url(&listeners.public, config.public_addr);
    Ok(Some(Circle::new(kafka, &api, circle::plan()).await?))
}

/// Starts the embedded broker if it is asked for; from then on it is one like any other.
fn embedded(config: &mut Config) -> Started<Option<EmbeddedBroker>> {
    if config.kafka != KafkaConfig::Embedded {
        return Ok(None);
    }
    let broker = EmbeddedBroker::start(&config.topics)?;
    config.kafka = KafkaConfig::Brokers(broker.bootstrap_servers().to_owned());
    Ok(Some(broker))
}

/// Each role's part of the readiness.
struct Parts {
    api: Part,
    scheduler: Part,
    consumer: Part,
}

impl Parts {
    fn of(health: &Health) -> Self {
        let part = |name| health.part(name);
        Self { api: part("api"), scheduler: part("scheduler"), consumer: part("consumer") }
    }
}

/// Starts the roles and puts their routers together.
fn start(
    config: &Config,
    store: SharedStore,
    clock: Clock,
    parts: Parts,
    shutdown: &Shutdown,
) -> Started<Api> {
    let traces = Traces::start(config, shutdown);
    let api = ApiDeps {
        store: store.clone(),
        ticket_keys: config.secrets.ticket_keys.clone(),
        pass_keys: config.secrets.pass_keys.clone(),
        clock: clock.clone(),
        limits: ApiLimits::from(config),
        traces: traces.clone(),
        health: parts.api,
    };
    let consumer = ConsumerDeps {
        store: store.clone(),
        ticket_keys: config.secrets.ticket_keys.clone(),
        clock: clock.clone(),
        health: parts.consumer,
    };
    let mut api = daegi_api::start(api, shutdown);
    let scheduler = SchedulerDeps::new(config, store, clock, traces, parts.scheduler)?;
    let admin = daegi_scheduler::start(scheduler, shutdown);
    daegi_consumer::start(daegi_consumer::source(config), consumer, shutdown).map_err(at_start)?;
    api.internal = api.internal.merge(admin);
    Ok(api)
}

/// The consumer has no troubles of its own at the start.
fn at_start(error: daegi_consumer::Error) -> daegi_scheduler::Error {
    match error {
        daegi_consumer::Error::Store(error) => error.into(),
        daegi_consumer::Error::Kafka(error) => error.into(),
    }
}

/// Plants the seeds, or the demo in an empty store, and names an item to try.
async fn stock_up(
    config: &Config,
    store: &SharedStore,
    seeds: &Seeds,
    clock: &Clock,
) -> Started<Option<ItemId>> {
    seeds.plant(&**store, clock.now_ms()).await?;
    if config.demo {
        return Ok(Some(circle::prepare(&**store, clock.now_ms()).await?));
    }
    if config.seed_items.is_none() && store.items().await?.is_empty() {
        demo::plant(&**store, clock.now_ms()).await?;
    }
    Ok(store.items().await?.into_iter().next().map(|item| item.id))
}

/// In memory everything dies together; in Redis the lines outlive the keys of their tickets.
fn warn_of_generated_secrets(config: &Config) {
    let generated = &config.secrets.generated;
    if matches!(config.store, StoreConfig::Redis(_)) && !generated.is_empty() {
        tracing::warn!(
            secrets = ?generated,
            "generated secrets end with this process, and so do the tokens of everybody in redis"
        );
    }
}

/// A closed stdout must not keep a waiting room from opening.
fn welcome(banner: &Banner) {
    let _ = std::io::stdout().lock().write_all(banner.to_string().as_bytes());
}
