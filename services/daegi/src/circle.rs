//! `--demo`: a product service, an order service and a crowd beside all roles, so that the whole
//! circle moves in one terminal. They use the same doors as anybody else: Kafka and HTTP.

mod narrator;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ItemChange, ItemId, ItemName, Millis, Policy};
use daegi_neighbours::Kafka;
use daegi_neighbours::crowd::{Crowd, Onlooker, Tally};
use daegi_neighbours::order::{self, Desk, OrderService, Setup};
use daegi_neighbours::product::{Plan, Product, Progress};
use daegi_neighbours::shop::{ENTRY_URL, Shop};
use daegi_runtime::Shutdown;
use daegi_store::Store;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use narrator::Narrator;

const ITEM: &str = "concert";
const NAME: &str = "Friday 8 pm concert";

/// Some cards are refused.
const CANCELLED_PERCENT: u8 = 5;

/// The neighbours, ready to start.
#[derive(Debug)]
pub struct Circle {
    product: Product,
    orders: OrderService,
    listener: TcpListener,
    /// Where the order service takes orders, such as `http://127.0.0.1:43211`.
    pub order_desk: String,
    /// Who will come.
    pub crowd: Crowd,
}

/// What there is to see of a circle that moves.
#[derive(Debug)]
pub struct View {
    /// How the sale goes.
    pub sale: watch::Receiver<Progress>,
    /// The order service's desk.
    pub desk: Arc<Desk>,
    /// What became of people.
    pub tally: Arc<Tally>,
    /// Sees who waits and who is inside.
    pub onlooker: Onlooker,
}

/// The neighbours at work.
#[derive(Debug)]
pub struct Running(mpsc::Receiver<()>);

/// Why there can be no demo.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// librdkafka refuses what it was told.
    #[error(transparent)]
    Kafka(#[from] daegi_kafka::Error),
    /// The order service refuses what it was told.
    #[error(transparent)]
    Orders(#[from] order::Error),
    /// No port is left for the order service.
    #[error("the order service of the demo has no port")]
    Listen(#[from] io::Error),
}

impl Circle {
    /// Neighbours of the daegi at this public address, on these brokers. The order service takes
    /// any free port of the loopback interface.
    ///
    /// # Errors
    /// If librdkafka refuses the brokers, or there is no port.
    pub async fn new(kafka: Kafka, api: &str, plan: Plan) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let order_desk = format!("http://{}", listener.local_addr()?);
        let crowd = Crowd::new(api, &order_desk, plan.item.clone());
        let product = Product::new(kafka.clone(), plan)?;
        let (api, cancelled_percent) = (api.to_owned(), CANCELLED_PERCENT);
        let setup = Setup { kafka, api, pages: None, cancelled_percent };
        Ok(Self { product, orders: OrderService::new(setup)?, listener, order_desk, crowd })
    }

    /// The pages of the order service's shop, which are served beside the waiting room.
    #[must_use]
    pub fn shop(&self) -> Shop {
        let (item, name) = item();
        Shop { desk: self.orders.desk(), item, name }
    }

    /// Starts everybody, until the shutdown.
    pub fn start(self, shutdown: &Shutdown) -> (View, Running) {
        let Self { product, orders, listener, crowd, .. } = self;
        let stop = || shutdown.token().clone();
        let tally = Arc::<Tally>::default();
        let view = View {
            sale: product.progress(),
            desk: orders.desk(),
            tally: Arc::clone(&tally),
            onlooker: crowd.onlooker(),
        };
        let (here, gone) = mpsc::channel(1);
        let here = || here.clone();
        shutdown.spawn("product service", present(product.run(stop()), here()));
        shutdown.spawn("order service", present(orders.run(listener, stop()), here()));
        shutdown.spawn("crowd", present(crowd.run(tally, stop()), here()));
        (view, Running(gone))
    }
}

impl Running {
    /// Waits until all have left. A broker inside this process must stay as long.
    pub async fn gone(mut self) {
        while self.0.recv().await.is_some() {}
    }
}

/// Somebody is here until their work is done.
async fn present(work: impl Future<Output = ()>, _here: mpsc::Sender<()>) {
    work.await;
}

impl View {
    /// Tells what happens, on stdout, until the shutdown.
    pub fn narrate(self, shutdown: &Shutdown) {
        let stop = shutdown.token().clone();
        let narrator = Narrator::new(self);
        shutdown.spawn("narrator", async move {
            stop.run_until_cancelled(narrator.tell()).await;
        });
    }
}

/// Five hundred seats, which last some two minutes, and two hundred more whenever they are gone:
/// somebody who looks in later finds the same to see.
#[must_use]
pub fn plan() -> Plan {
    let (item, name) = item();
    Plan {
        item,
        name,
        stock: 500,
        restock: 200,
        restocks: u32::MAX,
        restock_after: Duration::from_secs(20),
        linger: Duration::from_secs(6),
        lasts: Duration::from_secs(86_400),
    }
}

/// What the operator does before the sale: sets the rules of the line. Everything else about the
/// item is the product service's to say, and will be newer.
///
/// # Errors
/// If the store does not answer.
pub async fn prepare(store: &dyn Store, now: Millis) -> daegi_store::Result<ItemId> {
    let (id, name) = item();
    let line = ItemChange {
        id: id.clone(),
        name,
        stock: 0,
        enabled: false,
        version: Some(0),
        policy: Some(policy()),
    };
    store.put_item(&line, now).await?;
    Ok(id)
}

/// The shop takes twenty people at once. Entries and absences are short, because so is a demo, but
/// long enough for a person to find the button.
fn policy() -> Policy {
    Policy {
        max_active: Some(20),
        pass_ttl_seconds: 45,
        grace_seconds: 20,
        missed_keep_seconds: 60,
        entry_url: Some(ENTRY_URL.to_owned()),
        ..Policy::default()
    }
}

fn item() -> (ItemId, ItemName) {
    #[expect(clippy::expect_used, reason = "constants, covered by a test")]
    (ItemId::parse(ITEM).expect("a valid id"), ItemName::parse(NAME).expect("a valid name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_item_and_its_rules_are_valid() {
        assert_eq!(policy().check(), Ok(()));
        assert_eq!(plan().item.as_str(), ITEM);
    }
}
