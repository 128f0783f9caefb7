//! An order service: sells to admitted users and publishes how each order ended.
//!
//! It reads admissions from `token.activated`, but a user buys with the **pass**, which daegi signs and the guard checks
//! offline. A sale therefore continues while Kafka is late, and no order calls daegi.
//!
//! | module | content |
//! |---|---|
//! | [`ledger`] | admissions, stock levels and orders |
//! | [`checkout`] | placing an order |
//! | [`http`] | `POST /orders` |

pub mod checkout;
pub mod http;
pub mod ledger;

use std::sync::Arc;

use daegi_domain::{ItemChanged, TokenActivated, Topic};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::Kafka;
use crate::topic_reader::TopicReader;
pub use checkout::Checkout;

/// Consumer group for `token.activated`.
const GROUP: &str = "order-service";

/// Configuration of the service.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Brokers and topics.
    pub kafka: Kafka,
    /// Public URL of daegi as this service reaches it, such as `http://localhost:8080`.
    pub api: String,
    /// Public URL of daegi as browsers reach it, for links to the waiting page; `api` if `None`.
    pub pages: Option<String>,
    /// Percentage of orders that are cancelled because the card is declined.
    pub cancelled_percent: u8,
}

/// Errors at the creation of the service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A reader cannot be created.
    #[error(transparent)]
    Reader(#[from] rdkafka::error::KafkaError),
    /// The publisher cannot be created.
    #[error(transparent)]
    Publisher(#[from] daegi_kafka::Error),
    /// The guard cannot be created.
    #[error(transparent)]
    Guard(#[from] daegi_guard::Error),
}

/// An order service.
#[derive(Debug)]
pub struct OrderService {
    checkout: Arc<Checkout>,
    activated: TopicReader,
    items: TopicReader,
}

impl OrderService {
    /// Creates the service. It does nothing until [`OrderService::run`].
    ///
    /// # Errors
    /// If librdkafka rejects the brokers or the guard cannot be created.
    pub fn new(setup: Setup) -> Result<Self, Error> {
        let activated = TopicReader::new(&setup.kafka, Topic::TokenActivated, GROUP)?;
        // A separate group, because every replica needs all stock levels.
        let items = TopicReader::new(&setup.kafka, Topic::ItemChanged, "order-service-stock")?;
        Ok(Self { checkout: Arc::new(Checkout::new(setup)?), activated, items })
    }

    /// The checkout, for access to its ledger.
    #[must_use]
    pub fn checkout(&self) -> Arc<Checkout> {
        Arc::clone(&self.checkout)
    }

    /// Serves orders until `stop` is cancelled; orders in progress finish.
    pub async fn run(self, listener: TcpListener, stop: CancellationToken) {
        let Self { checkout, activated, items } = self;
        let router = http::router(Arc::clone(&checkout));
        let serving =
            axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
        let consuming = async {
            tokio::join!(
                consume_admissions(&checkout, &activated),
                consume_stock(&checkout, &items)
            )
        };
        let (served, _) = tokio::join!(serving, stop.run_until_cancelled(consuming));
        if let Err(error) = served {
            tracing::error!(%error, "order listener failed, no more orders are served");
        }
        tokio::join!(activated.close(), items.close());
    }
}

/// Records admissions.
async fn consume_admissions(checkout: &Checkout, activated: &TopicReader) {
    loop {
        let read = activated.next::<TokenActivated>().await;
        checkout.ledger().record_admission(&read.event);
        activated.ack(&read);
    }
}

/// Records stock levels. Acknowledges nothing, because stock levels are kept in memory: every start reads the whole
/// compacted topic.
async fn consume_stock(checkout: &Checkout, items: &TopicReader) {
    loop {
        let read = items.next::<ItemChanged>().await;
        checkout.ledger().item_changed(&read.event);
    }
}
