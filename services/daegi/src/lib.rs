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
//! | [`simulate`] | `daegi simulate`, which forecasts a sale |
//! | [`verify`] | `daegi verify draw`, which checks the record of a draw |

pub mod banner;
mod error;
pub mod initial_item;
pub mod simulate;
pub mod verify;

use std::io::Write;

use daegi_api::{Api, ApiDeps};
use daegi_bootstrap::{ServiceContext, serve_until_open};
use daegi_consumer::ConsumerDeps;
use daegi_domain::ItemId;
use daegi_kafka::EmbeddedBroker;
use daegi_runtime::{Clock, Config, KafkaConfig, Shutdown, StoreConfig};
use daegi_scheduler::{SchedulerDeps, Seeds};
use daegi_store::SharedStore;
use daegi_storefront::Kafka;
use daegi_storefront::demo::{self, Demo};

use banner::Banner;
pub use daegi_bootstrap::Listeners;
pub use error::Error;

/// The components of the process in readiness and logs.
const COMPONENTS: [&str; 3] =
    [daegi_api::COMPONENT, daegi_scheduler::COMPONENT, daegi_consumer::COMPONENT];

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
    let mut banner = Banner::new(&config, &listeners);
    let demo = new_demo(&config, &listeners).await?;
    banner.orders_url = demo.as_ref().map(|demo| demo.orders_url.clone());
    let opened = serve_until_open(&config, &COMPONENTS, listeners, &shutdown).await;
    let Some(mut context) = opened.map_err(daegi_scheduler::Error::from)? else {
        return Ok(());
    };
    banner.item = create_initial_items(&config, &context.store, &seeds, &context.clock).await?;
    warn_of_generated_secrets(&config);
    let mut api = start(&config, &context, &shutdown)?;
    if let Some(demo) = &demo {
        api.public = api.public.merge(demo.shop().router());
    }
    context.server.replace(api.services(&context.health));
    print_banner(&banner);
    let demo = async {
        if let Some(demo) = demo {
            let (handles, tasks) = demo.start(&shutdown);
            handles.narrate(&shutdown);
            tasks.join().await;
        }
    };
    tokio::join!(context.server.run(), demo);
    Ok(())
}

/// The services of the demo if `--demo` is set.
async fn new_demo(config: &Config, listeners: &Listeners) -> Result<Option<Demo>, Error> {
    let Some(brokers) = config.kafka.brokers().filter(|_| config.demo) else { return Ok(None) };
    let kafka = Kafka { brokers: brokers.to_owned(), topics: config.topics.clone() };
    let api = banner::url(listeners.public.as_ref(), config.public_addr);
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

/// Starts all roles and merges their routers.
fn start(config: &Config, context: &ServiceContext, shutdown: &Shutdown) -> Started<Api> {
    let scheduler = SchedulerDeps::new(config, context)?;
    let mut api = daegi_api::start(ApiDeps::new(config, context), shutdown);
    api.internal = api.internal.merge(daegi_scheduler::start(scheduler, shutdown));
    let consumer = ConsumerDeps::new(config, context);
    daegi_consumer::start(daegi_consumer::consumer_config(config), consumer, shutdown)?;
    Ok(api)
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

/// Warns if secrets are generated and the store is Redis: the lines outlive this process, but the next
/// process generates other secrets, with which the tokens of their tickets are invalid.
fn warn_of_generated_secrets(config: &Config) {
    let generated = &config.secrets.generated;
    if matches!(config.store, StoreConfig::Redis(_)) && !generated.is_empty() {
        tracing::warn!(
            secrets = ?generated,
            "generated secrets are lost at exit, which invalidates all tokens in redis; configure them"
        );
    }
}

/// Prints the banner. Ignores errors, because a closed stdout must not prevent the start.
fn print_banner(banner: &Banner) {
    let _ = std::io::stdout().lock().write_all(banner.to_string().as_bytes());
}
