//! The consumer: reads what product and order services say into the store.
//!
//! A pod of its own, so that product traffic never shares a process with people's traffic. The
//! crate promises:
//!
//! - **Nothing is skipped**: the store away means waiting, never a lost or a dead message.
//! - **Repeats are harmless**: an item's version and a ticket's end are checked in the store.
//!
//! With Kafka off nobody says anything: the consumer answers for its health and waits. Items are
//! then changed by hand, through the admin API of the scheduler.
//!
//! | module | what lives there |
//! |---|---|
//! | [`items`] | what product services say |
//! | [`orders`] | what order services say |
//! | [`ends`] | tickets that ended before the store lost data, from daegi's own `token.closed` |
//! | `replay` | notes in the store on how far a topic was read |
//! | `presence` | tells operators how far it is behind |
//! | [`error`] | why it could not, and whether waiting helps |

pub mod ends;
pub mod error;
pub mod items;
pub mod orders;
mod presence;
mod replay;

use std::pin::pin;

use daegi_domain::{TicketKeys, Topic};
use daegi_kafka::{Consumer, Source};
use daegi_runtime::health::Part;
use daegi_runtime::http::{Limits, guarded, serve};
use daegi_runtime::{Clock, Config, Health, Shutdown};
use daegi_store::{SharedStore, clock_skew};
use metrics::gauge;
use tokio::net::TcpListener;

pub use ends::Ends;
pub use error::Error;
pub use items::Items;
pub use orders::Orders;

/// What a consumer works with.
#[derive(Clone)]
pub struct ConsumerDeps {
    /// Where the lines live.
    pub store: SharedStore,
    /// Verify the tokens that order services send back.
    pub ticket_keys: TicketKeys,
    /// Tells the store the time.
    pub clock: Clock,
    /// Ready once it reads, or at once where there is nothing to read.
    pub health: Part,
}

/// What a configuration says is to be read, if anything.
#[must_use]
pub fn source(config: &Config) -> Option<Source> {
    Some(Source {
        brokers: config.kafka.brokers()?.to_owned(),
        topics: config.topics.clone(),
        group: config.consumer_group.clone(),
    })
}

/// Starts to read, if there is anything to read.
///
/// # Errors
/// If librdkafka refuses the brokers' addresses. Brokers that are away are waited for.
pub fn start(source: Option<Source>, deps: ConsumerDeps, shutdown: &Shutdown) -> Result<(), Error> {
    let health = deps.health.clone();
    if let Some(source) = source {
        let items = Consumer::new(source.clone(), Items::new(&deps))?;
        let orders = Consumer::new(source.clone(), Orders::new(&deps))?;
        let ends = Consumer::new(source, Ends::new(&deps))?;
        let telling = presence::tell(deps.store, deps.clock, vec![items.lag(), orders.lag()]);
        shutdown.spawn_until_stopped("presence", telling);
        shutdown.spawn("items", items.run(shutdown.token().clone()));
        shutdown.spawn("orders", orders.run(shutdown.token().clone()));
        shutdown.spawn("ends", ends.run(shutdown.token().clone()));
    } else {
        tracing::info!("kafka is off, no events are read");
        // None can be told from nobody reads.
        for topic in Topic::IN {
            gauge!(daegi_kafka::meters::LAG, "topic" => topic.event_type()).set(0);
        }
    }
    health.set_ready();
    Ok(())
}

/// Runs one replica until the shutdown.
///
/// # Errors
/// If the brokers' addresses are wrong or the store cannot be used. What is merely away is waited
/// for.
pub async fn run(config: Config, listener: TcpListener, shutdown: Shutdown) -> Result<(), Error> {
    let health = Health::new(&shutdown);
    let part = health.part("consumer");
    let router = guarded(health.router());
    let mut serving = pin!(serve(listener, router, Limits::from(&config), shutdown.clone()));
    let (redis, hold) = (config.store.redis(), config.recovery_hold);
    let (partitions, limits) = (config.partitions.into(), config.store_limits);
    let opening = daegi_store::open(redis, partitions, config.settings(), hold, limits);
    let store = tokio::select! {
        store = opening => store?,
        () = &mut serving => return Ok(()),
    };
    let watching = clock_skew::watch(store.clone(), || Clock::system().now_ms());
    shutdown.spawn_until_stopped("clock skew", watching);
    let ticket_keys = config.secrets.ticket_keys.clone();
    let deps = ConsumerDeps { store, ticket_keys, clock: Clock::system(), health: part };
    start(source(&config), deps, &shutdown)?;
    serving.await;
    Ok(())
}
