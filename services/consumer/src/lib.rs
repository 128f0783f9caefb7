//! The consumer: applies the events of product and order services to the store.
//!
//! It runs as a separate process, so that product traffic never shares a process with user traffic. The
//! crate guarantees:
//!
//! - **No event is skipped**: while the store is unavailable events are retried, never dropped or
//!   dead-lettered.
//! - **Repeats are harmless**: the store checks an item's version and a ticket's end.
//!
//! With Kafka off the consumer only serves health. Items are then changed through the admin API of the
//! scheduler.
//!
//! | module | what lives there |
//! |---|---|
//! | [`items`] | events of product services |
//! | [`orders`] | events of order services |
//! | [`ended_tickets`] | tickets that ended before the store lost data, from daegi's own `token.closed` |
//! | [`control`] | settings of items that the store lost, from daegi's own `control.changed` |
//! | `replay` | the replay progress of each topic partition, in the store |
//! | `heartbeat` | reports the lag to operators |
//! | [`error`] | why an event cannot be applied, and whether a retry helps |

pub mod control;
pub mod ended_tickets;
pub mod error;
mod heartbeat;
pub mod items;
pub mod orders;
mod replay;

use ::metrics::gauge;
use daegi_bootstrap::{ServiceContext, Services, serve_until_open};
use daegi_domain::{TicketKeys, Topic};
use daegi_kafka::{Brokers, Consumer, ConsumerConfig, TopicMetadata, metrics};
use daegi_runtime::health::Component;
use daegi_runtime::http::HttpService;
use daegi_runtime::{Clock, Config, Shutdown};
use daegi_store::SharedStore;

pub use control::ControlHandler;
pub use daegi_bootstrap::Listeners;
pub use ended_tickets::EndedTicketHandler;
pub use error::Error;
pub use items::ItemHandler;
pub use orders::OrderHandler;

/// The name of the component in readiness and logs.
pub const COMPONENT: &str = "consumer";

/// The dependencies of a consumer.
#[derive(Clone)]
pub struct ConsumerDeps {
    /// The store.
    pub store: SharedStore,
    /// Verifies the tokens that order services send back.
    pub ticket_keys: TicketKeys,
    /// The time of store calls.
    pub clock: Clock,
    /// Set to ready when the consumers are started, or immediately without Kafka.
    pub health: Component,
}

/// Returns what the configuration consumes; `None` if Kafka is off.
#[must_use]
pub fn consumer_config(config: &Config) -> Option<ConsumerConfig> {
    Some(ConsumerConfig {
        brokers: Brokers::from(config.kafka.brokers()?)
            .with_properties(config.kafka_properties.as_deref()),
        topics: config.topics.clone(),
        group: config.consumer_group.clone(),
    })
}

/// Starts the consumers, if Kafka is on.
///
/// # Errors
/// If librdkafka rejects the broker addresses or properties. Unreachable brokers are waited for.
pub fn start(
    config: Option<ConsumerConfig>,
    deps: ConsumerDeps,
    shutdown: &Shutdown,
) -> daegi_kafka::Result<()> {
    metrics::describe();
    let health = deps.health.clone();
    if let Some(config) = config {
        let items = Consumer::new(config.clone(), ItemHandler::new(&deps))?;
        let orders = Consumer::new(config.clone(), OrderHandler::new(&deps))?;
        let ends = Consumer::new(config.clone(), EndedTicketHandler::new(&deps))?;
        let controls = Consumer::new(config.clone(), ControlHandler::new(&deps))?;
        let metadata = TopicMetadata::new(&config.brokers)?;
        let replay = control::watch_replay(deps.store.clone(), config, metadata);
        shutdown.spawn_until_stopped("settings replay", replay);
        shutdown.spawn("settings", controls.run(shutdown.token().clone()));
        let heartbeats = heartbeat::run(deps.store, deps.clock, vec![items.lag(), orders.lag()]);
        shutdown.spawn_until_stopped("heartbeat", heartbeats);
        shutdown.spawn("items", items.run(shutdown.token().clone()));
        shutdown.spawn("orders", orders.run(shutdown.token().clone()));
        shutdown.spawn("ends", ends.run(shutdown.token().clone()));
    } else {
        tracing::info!("kafka is off, no events are consumed");
        // Registers the gauges at 0, so that a query can distinguish 0 from absent.
        for topic in Topic::INBOUND {
            gauge!(metrics::LAG, "topic" => topic.event_type()).set(0);
        }
    }
    health.set_ready();
    Ok(())
}

/// Runs one replica until the shutdown.
///
/// # Errors
/// If the broker addresses are wrong or the store cannot be used. An unreachable store or broker is
/// waited for.
pub async fn run(config: Config, listeners: Listeners, shutdown: Shutdown) -> Result<(), Error> {
    let opened = serve_until_open(&config, &[COMPONENT], listeners, &shutdown).await?;
    let Some(mut context) = opened else {
        return Ok(());
    };
    start(consumer_config(&config), ConsumerDeps::new(&config, &context), &shutdown)?;
    let internal = HttpService::new(context.health.router());
    context.server.replace(Services { public: None, internal });
    context.server.run().await;
    Ok(())
}

impl ConsumerDeps {
    /// Builds the dependencies from a configuration.
    #[must_use]
    pub fn new(config: &Config, context: &ServiceContext) -> Self {
        Self {
            store: context.store.clone(),
            ticket_keys: config.secrets.ticket_keys.clone(),
            clock: context.clock.clone(),
            health: context.health.component(COMPONENT),
        }
    }
}
