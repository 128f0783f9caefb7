//! Example services around a waiting room, to run and to copy, with simulated visitors.
//!
//! ```text
//! product ── item.changed ──► daegi ── token.activated ──► order
//!    ▲                          ▲                            │
//!    └────── order.closed ──────┴────────────────────────────┘
//! ```
//!
//! The services use daegi's crates only for topic names, event types, the publisher and the guard. Everything else
//! is written with plain libraries, as another team would. State that belongs in a database is kept in memory.
//!
//! | module | content |
//! |---|---|
//! | [`product`] | publishes what is on sale and the stock |
//! | [`order`] | reads admissions, checks passes offline, publishes how orders ended |
//! | [`shop`] | the pages of a shop behind the waiting room |
//! | [`load`] | simulated visitors that join, wait, buy, leave or disappear |
//! | [`topic_reader`] | at-least-once reading of a topic with plain rdkafka |
//! | [`demo`] | all of them in the process of `daegi --demo` |

pub mod demo;
pub mod load;
pub mod order;
pub mod product;
pub mod shop;
pub mod topic_reader;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use daegi_domain::{Millis, Topics};
use daegi_kafka::{Publisher, Record};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Delay before a failed operation is retried.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The brokers and topic names.
#[derive(Debug, Clone)]
pub struct Kafka {
    /// `host:port,…`
    pub brokers: String,
    /// The topic names on these brokers.
    pub topics: Topics,
}

/// Cancels `stop` at Ctrl-C or SIGTERM.
pub async fn stop_on_signal(stop: CancellationToken) {
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(error) => tracing::error!(%error, "cannot register a signal handler"),
    }
    stop.cancel();
}

/// Publishes until the broker confirms. A retry may publish an event twice, so every event has a stable id or a version.
async fn publish_with_retry(publisher: &Publisher, record: Record) {
    while let Err(error) = publisher.publish(std::slice::from_ref(&record)).await {
        tracing::warn!(%error, topic = record.topic, "kafka publish failed, retrying");
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// The HTTP client of all services here. Without a proxy, because all addresses are internal.
fn http_client() -> reqwest::Client {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build();
    client.unwrap_or_default()
}

fn now_ms() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
