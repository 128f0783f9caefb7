//! A product service: owns the item and its stock.
//!
//! It publishes `item.changed` after every change and reads `order.closed` to subtract sold pieces. A sale follows a
//! plan: it opens, sells out, is restocked, and closes.

mod sale;

use std::time::Duration;

use daegi_domain::{OrderClosed, Topic};
use daegi_kafka::{Publisher, Record};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

pub use sale::{Phase, Plan, Progress, Sale, Step};

use crate::topic_reader::TopicReader;
use crate::{Kafka, now_ms, publish_with_retry};

/// Consumer group for `order.closed`.
const GROUP: &str = "product-service";

/// A running sale of one item.
#[derive(Debug)]
pub struct Product {
    kafka: Kafka,
    publisher: Publisher,
    orders: TopicReader,
    sale: Sale,
    opened: Instant,
    progress: watch::Sender<Progress>,
}

impl Product {
    /// Creates the sale. It opens when [`Product::run`] is called.
    ///
    /// # Errors
    /// If librdkafka rejects the brokers.
    pub fn new(kafka: Kafka, plan: Plan) -> daegi_kafka::Result<Self> {
        let publisher = Publisher::new(&kafka.brokers)?;
        let orders = TopicReader::new(&kafka, Topic::OrderClosed, GROUP)?;
        let sale = Sale::new(plan);
        let progress = watch::Sender::new(sale.progress());
        Ok(Self { kafka, publisher, orders, sale, opened: Instant::now(), progress })
    }

    /// The progress of the sale.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Runs the sale until `stop` is cancelled.
    pub async fn run(mut self, stop: CancellationToken) {
        stop.run_until_cancelled(self.sell()).await;
        self.orders.close().await;
    }

    async fn sell(&mut self) {
        self.opened = Instant::now();
        self.sale.apply(Step::Open);
        self.publish().await;
        loop {
            let next = self.sale.next_step();
            tokio::select! {
                step = due_step(self.opened, next) => {
                    self.sale.apply(step);
                    self.publish().await;
                }
                order = self.orders.next::<OrderClosed>() => {
                    if self.sale.order_closed(&order.event, self.opened.elapsed()) {
                        self.publish().await;
                    }
                    // After the publish, so that an order whose change was not published is read again.
                    self.orders.ack(&order);
                }
            }
        }
    }

    /// Publishes the whole item, not the difference, because the topic is compacted and keeps only the last event of each
    /// item.
    async fn publish(&mut self) {
        let event = self.sale.item_changed(now_ms());
        match Record::from_event(&event, &self.kafka.topics) {
            Ok(record) => publish_with_retry(&self.publisher, record).await,
            Err(error) => tracing::error!(%error, "item event cannot be serialized"),
        }
        self.progress.send_replace(self.sale.progress());
    }
}

/// Returns the next step when it is due; never if there is none.
async fn due_step(opened: Instant, next: Option<(Duration, Step)>) -> Step {
    match next {
        Some((after, step)) => {
            sleep_until(opened + after).await;
            step
        }
        None => std::future::pending().await,
    }
}
