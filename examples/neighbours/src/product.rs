//! A product service: the one who knows what is on sale and how many are left.
//!
//! It publishes `item.changed` whenever that changes, and reads `order.closed` to know when it
//! does. A sale goes through a plan: it opens, sells out, is restocked as often as planned, and
//! closes.

mod sale;

use std::time::Duration;

use daegi_domain::{OrderClosed, Topic};
use daegi_kafka::{Publisher, Record};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

pub use sale::{Phase, Plan, Progress, Sale, Step};

use crate::reader::Reader;
use crate::{Kafka, now_ms, publish_for_sure};

/// The name under which replicas of this service share `order.closed`.
const GROUP: &str = "product-service";

/// A running sale of one item.
#[derive(Debug)]
pub struct Product {
    kafka: Kafka,
    publisher: Publisher,
    orders: Reader,
    sale: Sale,
    opened: Instant,
    progress: watch::Sender<Progress>,
}

impl Product {
    /// A sale after this plan. It opens when it is run.
    ///
    /// # Errors
    /// If librdkafka refuses the addresses.
    pub fn new(kafka: Kafka, plan: Plan) -> daegi_kafka::Result<Self> {
        let publisher = Publisher::new(&kafka.brokers)?;
        let orders = Reader::new(&kafka, Topic::OrderClosed, GROUP)?;
        let sale = Sale::new(plan);
        let progress = watch::Sender::new(sale.progress());
        Ok(Self { kafka, publisher, orders, sale, opened: Instant::now(), progress })
    }

    /// How the sale goes, for whoever wants to watch.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Sells until told to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        stop.run_until_cancelled(self.sell()).await;
        self.orders.close().await;
    }

    async fn sell(&mut self) {
        self.opened = Instant::now();
        self.sale.take(Step::Open);
        self.announce().await;
        loop {
            let next = self.sale.next_step();
            tokio::select! {
                step = at(self.opened, next) => {
                    self.sale.take(step);
                    self.announce().await;
                }
                order = self.orders.next::<OrderClosed>() => {
                    if self.sale.order_closed(&order.event, self.opened.elapsed()) {
                        self.announce().await;
                    }
                    // Only now: an order whose change was not published is read again.
                    self.orders.done(&order);
                }
            }
        }
    }

    /// Tells everybody what the item is now: the whole item, not the difference, because the
    /// topic is compacted and keeps only the last word about each.
    async fn announce(&mut self) {
        let event = self.sale.item_changed(now_ms());
        match Record::event(&event, &self.kafka.topics) {
            Ok(record) => publish_for_sure(&self.publisher, record).await,
            Err(error) => tracing::error!(%error, "the item cannot be written"),
        }
        self.progress.send_replace(self.sale.progress());
    }
}

/// The next step when it is due; never, if there is none.
async fn at(opened: Instant, next: Option<(Duration, Step)>) -> Step {
    match next {
        Some((after, step)) => {
            sleep_until(opened + after).await;
            step
        }
        None => std::future::pending().await,
    }
}
