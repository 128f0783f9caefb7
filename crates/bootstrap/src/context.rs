//! From bound listeners to an open store.

use daegi_runtime::{Clock, Config, Health, Shutdown, Tracer};
use daegi_store::{RedisConfig, RedisFiles, SharedStore, clock_skew};

use crate::{Listeners, Server};

/// The dependencies of a service, available once the store is open.
#[derive(Debug)]
pub struct ServiceContext {
    /// The store.
    pub store: SharedStore,
    /// Source of the time that is passed to the store.
    pub clock: Clock,
    /// Makes spans, unless tracing is off.
    pub tracer: Tracer,
    /// The readiness of the process, with the routes that the internal listener must serve.
    pub health: Health,
    /// The running server. It serves only health until [`Server::replace`].
    pub server: Server,
}

/// Serves health while it opens the store. The process is not ready before all `components` are.
/// Returns `None` if the shutdown begins before the store is open.
///
/// # Errors
/// If the store cannot be used. An unreachable store is no error: the call retries until the
/// shutdown.
pub async fn serve_until_open(
    config: &Config,
    components: &[&'static str],
    listeners: Listeners,
    shutdown: &Shutdown,
) -> daegi_store::Result<Option<ServiceContext>> {
    let health = Health::new(shutdown);
    for component in components {
        let _ = health.component(component);
    }
    let mut server = listeners.serve(&health, config, shutdown.clone());
    let store = tokio::select! {
        store = open_store(config) => store?,
        () = server.run() => return Ok(None),
    };
    let watching = clock_skew::watch(store.clone(), || Clock::system().now_ms());
    shutdown.spawn_until_stopped("clock skew", watching);
    let tracer = Tracer::start(config, shutdown);
    Ok(Some(ServiceContext { store, clock: Clock::system(), tracer, health, server }))
}

async fn open_store(config: &Config) -> daegi_store::Result<SharedStore> {
    let files = config.redis_files.clone();
    let files =
        RedisFiles { ca: files.ca, cert: files.cert, key: files.key, password: files.password };
    let redis = config.store.redis().map(|url| RedisConfig { url: url.to_owned(), files });
    let (redis, recovery_hold) = (redis.as_ref(), config.recovery_hold);
    let (partitions, limits) = (config.partitions.into(), config.store_limits);
    daegi_store::open(redis, partitions, config.settings(), recovery_hold, limits).await
}
