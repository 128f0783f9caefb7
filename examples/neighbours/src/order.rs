//! An order service: sells to whoever was let in, and says how each order ended.
//!
//! It learns who was let in from `token.activated`, but what lets a person buy is the **pass**
//! they bring: signed by daegi, checked by a guard without asking anybody. So a sale goes on while
//! Kafka is late, and daegi is not called for an order.
//!
//! | module | what lives there |
//! |---|---|
//! | [`book`] | who was let in, what is left, which orders there are |
//! | [`desk`] | placing an order |
//! | [`http`] | `POST /orders` |

pub mod book;
pub mod desk;
pub mod http;

use std::sync::Arc;

use daegi_domain::{ItemChanged, TokenActivated, Topic};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::Kafka;
use crate::reader::Reader;
pub use desk::Desk;

/// The name under which replicas of this service share `token.activated`.
const GROUP: &str = "order-service";

/// What the service is told.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Where events are exchanged.
    pub kafka: Kafka,
    /// daegi's public address as this service reaches it, such as `http://localhost:8080`.
    pub api: String,
    /// The same as people reach it, if that is another one: the waiting page is there.
    pub pages: Option<String>,
    /// How many of a hundred orders are cancelled: some cards are refused.
    pub cancelled_percent: u8,
}

/// Why there is no order service.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its readers cannot be made.
    #[error(transparent)]
    Reader(#[from] rdkafka::error::KafkaError),
    /// Its publisher cannot be made.
    #[error(transparent)]
    Publisher(#[from] daegi_kafka::Error),
    /// Its guard cannot be made.
    #[error(transparent)]
    Guard(#[from] daegi_guard::Error),
}

/// An order service.
#[derive(Debug)]
pub struct OrderService {
    desk: Arc<Desk>,
    activated: Reader,
    items: Reader,
}

impl OrderService {
    /// A service that is set up but not open yet.
    ///
    /// # Errors
    /// If librdkafka refuses the addresses, or a guard cannot be made.
    pub fn new(setup: Setup) -> Result<Self, Error> {
        let activated = Reader::new(&setup.kafka, Topic::TokenActivated, GROUP)?;
        // A group of its own: partitions of both topics must not be shared out between them.
        let items = Reader::new(&setup.kafka, Topic::ItemChanged, "order-service-stock")?;
        Ok(Self { desk: Arc::new(Desk::new(setup)?), activated, items })
    }

    /// The desk, for whoever wants to look into its book.
    #[must_use]
    pub fn desk(&self) -> Arc<Desk> {
        Arc::clone(&self.desk)
    }

    /// Takes orders until told to stop; those under way are finished.
    pub async fn run(self, listener: TcpListener, stop: CancellationToken) {
        let Self { desk, activated, items } = self;
        let router = http::router(Arc::clone(&desk));
        let serving =
            axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
        let listening =
            async { tokio::join!(hear_of_people(&desk, &activated), hear_of_stock(&desk, &items)) };
        let (served, _) = tokio::join!(serving, stop.run_until_cancelled(listening));
        if let Err(error) = served {
            tracing::error!(%error, "no orders are taken any more");
        }
        tokio::join!(activated.close(), items.close());
    }
}

/// Keeps who was let in.
async fn hear_of_people(desk: &Desk, activated: &Reader) {
    loop {
        let read = activated.next::<TokenActivated>().await;
        desk.book().let_in(&read.event);
        activated.done(&read);
    }
}

/// Keeps what is left. Nothing is ever marked as done: what is left is in no database here, so
/// every start reads the whole topic, which is compacted and therefore short.
async fn hear_of_stock(desk: &Desk, items: &Reader) {
    loop {
        let read = items.next::<ItemChanged>().await;
        desk.book().item_changed(&read.event);
    }
}
