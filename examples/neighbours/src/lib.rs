//! The neighbours of a waiting room: examples of the services on the other side of Kafka, to run
//! and to copy, and a crowd that keeps them busy.
//!
//! ```text
//! product ── item.changed ──► daegi ── token.activated ──► order
//!    ▲                          ▲                            │
//!    └────── order.closed ──────┴────────────────────────────┘
//! ```
//!
//! They use daegi's crates for the names of topics, the types of events, the publisher and the guard.
//! Everything else is what another team would write with the libraries at hand, and what they
//! would keep in a database is kept in memory.
//!
//! | module | what lives there |
//! |---|---|
//! | [`product`] | tells the waiting room what is on sale and how many are left |
//! | [`order`] | hears who was let in, checks passes offline, reports how orders ended |
//! | [`shop`] | the pages of a shop behind the waiting room |
//! | [`crowd`] | people who join, wait, buy, change their mind or never come back |
//! | [`reader`] | reading a topic at least once, with plain rdkafka |

pub mod crowd;
pub mod order;
pub mod product;
pub mod reader;
pub mod shop;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use daegi_domain::{Millis, Topics};
use daegi_kafka::{Publisher, Record};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The pause before something is tried again that did not work.
const PAUSE: Duration = Duration::from_millis(500);

/// Where events are exchanged.
#[derive(Debug, Clone)]
pub struct Kafka {
    /// `host:port,…`
    pub brokers: String,
    /// What the topics are called there.
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
        Err(error) => tracing::error!(%error, "cannot listen for signals"),
    }
    stop.cancel();
}

/// Publishes until the broker has confirmed. Trying again may publish twice, which is why every
/// event has an id that stays the same, or a version.
async fn publish_for_sure(publisher: &Publisher, record: Record) {
    while let Err(error) = publisher.publish(std::slice::from_ref(&record)).await {
        tracing::warn!(%error, topic = record.topic, "not published, trying again");
        tokio::time::sleep(PAUSE).await;
    }
}

/// The client of everybody here who speaks HTTP. All of it is the same company's, so no proxy.
fn http_client() -> reqwest::Client {
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build();
    client.unwrap_or_default()
}

fn now_ms() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
