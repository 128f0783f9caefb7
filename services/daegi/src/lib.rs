//! All roles in one process: api, scheduler and consumer share one store and two ports.
//!
//! Without configuration the store is memory, the broker is embedded, the secrets are generated and
//! one item exists, so that `cargo run --release` is a working waiting room. `--demo` adds the services of
//! `examples/storefront`.
//!
//! | module | content |
//! |---|---|
//! | [`banner`] | addresses and example commands, printed at the start |
//! | [`initial_item`] | the item that is created in an empty store |

pub mod banner;
mod error;
pub mod initial_item;

use std::io::Write;
use std::pin::pin;

use daegi_api::{Api, ApiDeps, ApiLimits, SwappableRouters};
use daegi_consumer::ConsumerDeps;
use daegi_domain::ItemId;
use daegi_kafka::EmbeddedBroker;
use daegi_runtime::health::Component;
use daegi_runtime::http::Limits;
use daegi_runtime::{Clock, Config, Health, KafkaConfig, Shutdown, StoreConfig, Tracer};
use daegi_scheduler::{SchedulerDeps, Seeds};
use daegi_store::{SharedStore, clock_skew};
use daegi_storefront::Kafka;
use daegi_storefront::demo::{self, Demo};

use banner::Banner;
pub use daegi_api::Listeners;
pub use error::Error;

/// The result of starting a role.
type Started<T> = Result<T, daegi_scheduler::Error>;

/// Runs every role until the shutdown.
///
/// # Errors
/// If the seed file is invalid or the store cannot be used. If the store is unreachable, the process stays
/// alive but not ready and retries.
pub async fn run(
    mut config: Config,
    listeners: Listeners,
    shutdown: Shutdown,
) -> Result<(), Error> {
    let seeds = Seeds::from_config(&config).map_err(daegi_scheduler::Error::from)?;
    let _broker = start_embedded_broker(&mut config)?;
    let health = Health::new(&shutdown);
    let parts = Parts::of(&health);
    let routers = SwappableRouters::health_only(&health);
    let mut banner = Banner::new(&config, &listeners);
    let demo = new_demo(&config, &listeners).await?;
    banner.orders_url = demo.as_ref().map(|demo| demo.orders_url.clone());
    let mut serving = pin!(listeners.serve(&routers, Limits::from(&config), shutdown.clone()));
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
    banner.item = create_initial_items(&config, &store, &seeds, &clock).await?;
    warn_of_generated_secrets(&config);
    let mut api = start(&config, store, clock, parts, &shutdown)?;
    let Some(demo) = demo else {
        routers.serve(api, &health);
        print_banner(&banner);
        serving.await;
        return Ok(());
    };
    api.public = api.public.merge(demo.shop().router());
    routers.serve(api, &health);
    print_banner(&banner);
    let (handles, tasks) = demo.start(&shutdown);
    handles.narrate(&shutdown);
    tokio::join!(serving, tasks.join());
    Ok(())
}

/// The services of the demo if `--demo` is set.
async fn new_demo(config: &Config, listeners: &Listeners) -> Result<Option<Demo>, Error> {
    let Some(brokers) = config.kafka.brokers().filter(|_| config.demo) else { return Ok(None) };
    let kafka = Kafka { brokers: brokers.to_owned(), topics: config.topics.clone() };
    let api = banner::url(&listeners.public, config.public_addr);
    Ok(Some(Demo::new(kafka, &api, demo::sale_plan()).await?))
}

/// Starts the embedded broker if it is configured, and configures the roles to use it.
fn start_embedded_broker(config: &mut Config) -> Started<Option<EmbeddedBroker>> {
    if config.kafka != KafkaConfig::Embedded {
        return Ok(None);
    }
    let broker = EmbeddedBroker::start(&config.topics)?;
    config.kafka = KafkaConfig::Brokers(broker.bootstrap_servers().to_owned());
    Ok(Some(broker))
}

/// The health component of each role.
struct Parts {
    api: Component,
    scheduler: Component,
    consumer: Component,
}

impl Parts {
    fn of(health: &Health) -> Self {
        let component = |name| health.component(name);
        Self {
            api: component("api"),
            scheduler: component("scheduler"),
            consumer: component("consumer"),
        }
    }
}

/// Starts all roles and merges their routers.
fn start(
    config: &Config,
    store: SharedStore,
    clock: Clock,
    parts: Parts,
    shutdown: &Shutdown,
) -> Started<Api> {
    let tracer = Tracer::start(config, shutdown);
    let api = ApiDeps {
        store: store.clone(),
        ticket_keys: config.secrets.ticket_keys.clone(),
        pass_keys: config.secrets.pass_keys.clone(),
        clock: clock.clone(),
        limits: ApiLimits::from(config),
        tracer: tracer.clone(),
        health: parts.api,
    };
    let consumer = ConsumerDeps {
        store: store.clone(),
        ticket_keys: config.secrets.ticket_keys.clone(),
        clock: clock.clone(),
        health: parts.consumer,
    };
    let mut api = daegi_api::start(api, shutdown);
    let scheduler = SchedulerDeps::new(config, store, clock, tracer, parts.scheduler)?;
    let admin = daegi_scheduler::start(scheduler, shutdown);
    daegi_consumer::start(daegi_consumer::consumer_config(config), consumer, shutdown)
        .map_err(role_error)?;
    api.internal = api.internal.merge(admin);
    Ok(api)
}

/// All errors of a consumer at the start are also errors of the scheduler.
fn role_error(error: daegi_consumer::Error) -> daegi_scheduler::Error {
    match error {
        daegi_consumer::Error::Store(error) => error.into(),
        daegi_consumer::Error::Kafka(error) => error.into(),
    }
}

/// Creates the seed items, the item of the demo, or an initial item in an empty store. Returns an item for the
/// examples of the banner.
async fn create_initial_items(
    config: &Config,
    store: &SharedStore,
    seeds: &Seeds,
    clock: &Clock,
) -> Started<Option<ItemId>> {
    seeds.create_missing(&**store, clock.now_ms()).await?;
    if config.demo {
        return Ok(Some(demo::set_policy(&**store, clock.now_ms()).await?));
    }
    if config.seed_items.is_none() && store.items().await?.is_empty() {
        initial_item::create(&**store, clock.now_ms()).await?;
    }
    Ok(store.items().await?.into_iter().next().map(|item| item.id))
}

/// Lines in Redis outlive this process, and the tokens of their tickets are invalid with the next generated secrets.
fn warn_of_generated_secrets(config: &Config) {
    let generated = &config.secrets.generated;
    if matches!(config.store, StoreConfig::Redis(_)) && !generated.is_empty() {
        tracing::warn!(
            secrets = ?generated,
            "generated secrets are lost at exit, which invalidates all tokens in redis; configure them"
        );
    }
}

/// Ignores errors: a closed stdout must not prevent the start.
fn print_banner(banner: &Banner) {
    let _ = std::io::stdout().lock().write_all(banner.to_string().as_bytes());
}
