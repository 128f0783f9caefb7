//! The whole waiting room in one process: nothing but composition.
//!
//! All roles share one store and two ports. Without any configuration the store is memory, the
//! secrets are made up and there is a demo item, so `cargo run --release` is a working waiting
//! room that says how to try it.
//!
//! | module | what lives there |
//! |---|---|
//! | [`banner`] | what a person is told who has just started it |
//! | [`demo`] | the item they find |

pub mod banner;
pub mod demo;

use std::io::Write;

use daegi_api::{Api, ApiDeps};
use daegi_domain::ItemId;
use daegi_runtime::http::{Limits, guarded, serve};
use daegi_runtime::{Clock, Config, Health, Shutdown, StoreConfig};
use daegi_scheduler::{SchedulerDeps, Seeds};
use daegi_store::SharedStore;

use banner::Banner;
pub use daegi_api::Listeners;

/// Why the process cannot start. Once it runs, it waits for whatever it misses.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store, the seeds or the scheduler.
    #[error(transparent)]
    Scheduler(#[from] daegi_scheduler::Error),
}

/// Runs every role until the shutdown.
///
/// # Errors
/// If the seed file is wrong or the store cannot be used; nothing is served then. A store that is
/// merely away is waited for.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> Result<(), Error> {
    let seeds = Seeds::of(&config).map_err(daegi_scheduler::Error::from)?;
    let opening = daegi_scheduler::open_store(&config);
    let Some(store) = shutdown.token().run_until_cancelled(opening).await.transpose()? else {
        return Ok(());
    };
    let clock = Clock::system();
    let item = stock_up(&config, &store, &seeds, &clock).await?;
    warn_of_generated_secrets(&config);
    welcome(&Banner::new(&config, &listeners, &item));
    serve_all(&config, listeners, store, clock, shutdown).await;
    Ok(())
}

/// Composes the roles' routers on the two ports, each with its own part of the readiness.
async fn serve_all(
    config: &Config,
    listeners: Listeners,
    store: SharedStore,
    clock: Clock,
    shutdown: Shutdown,
) {
    let health = Health::new(&shutdown);
    let api = ApiDeps {
        store: store.clone(),
        ticket_keys: config.secrets.ticket_keys.clone(),
        pass_keys: config.secrets.pass_keys.clone(),
        clock: clock.clone(),
        health: health.part("api"),
    };
    let Api { public, internal } = daegi_api::start(api, &shutdown);
    let scheduler = SchedulerDeps::new(config, store, clock, health.part("scheduler"));
    let admin = daegi_scheduler::start(scheduler, &shutdown);
    daegi_consumer::start(config.kafka, &health.part("consumer"));
    let internal = health.router().merge(internal).merge(admin);
    let limits = Limits::from(config);
    tokio::join!(
        serve(listeners.public, guarded(public), limits.clone(), shutdown.clone()),
        serve(listeners.internal, guarded(internal), limits, shutdown),
    );
}

/// Plants the seeds, or the demo in an empty store, and names an item to try.
async fn stock_up(
    config: &Config,
    store: &SharedStore,
    seeds: &Seeds,
    clock: &Clock,
) -> Result<Option<ItemId>, daegi_scheduler::Error> {
    seeds.plant(&**store, clock.now_ms()).await?;
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
