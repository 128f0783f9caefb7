//! `daegi --demo`: product service, order service and simulated visitors in the process of daegi, so that a whole
//! sale runs in one terminal. They use only Kafka and the public HTTP API.

mod narrator;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use crate::Kafka;
use crate::load::{LineClient, OutcomeCounts, VisitorLoad};
use crate::order::{self, Checkout, OrderService, Setup};
use crate::product::{Plan, Product, Progress};
use crate::shop::{ENTRY_URL, Shop};
use daegi_domain::{Branding, ItemChange, ItemId, ItemName, Millis, PageLink, PageLinks, Policy};
use daegi_runtime::Shutdown;
use daegi_store::ItemStore;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use narrator::Narrator;

const ITEM: &str = "concert";
const NAME: &str = "Friday 8 pm concert";

/// Share of declined cards.
const CANCELLED_PERCENT: u8 = 5;

/// The services of the demo, ready to start.
#[derive(Debug)]
pub struct Demo {
    product: Product,
    orders: OrderService,
    listener: TcpListener,
    /// URL of the order service, such as `http://127.0.0.1:43211`.
    pub orders_url: String,
    /// The simulated visitors.
    pub load: VisitorLoad,
}

/// Read access to a running demo.
#[derive(Debug)]
pub struct DemoHandles {
    /// Progress of the sale.
    pub sale: watch::Receiver<Progress>,
    /// The order service's checkout.
    pub checkout: Arc<Checkout>,
    /// Outcomes of all visits.
    pub outcomes: Arc<OutcomeCounts>,
    /// Reads the public state of the line.
    pub line_client: LineClient,
}

/// The running tasks of the demo.
#[derive(Debug)]
pub struct DemoTasks(mpsc::Receiver<()>);

/// Errors at the start of the demo.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// librdkafka rejects the configuration.
    #[error(transparent)]
    Kafka(#[from] daegi_kafka::Error),
    /// The order service cannot be created.
    #[error(transparent)]
    Orders(#[from] order::Error),
    /// The order service cannot bind a port.
    #[error("cannot bind a port for the order service of the demo")]
    Listen(#[from] io::Error),
}

impl Demo {
    /// Creates the services for the daegi at the URL `api`. The order service binds a free loopback port.
    ///
    /// # Errors
    /// If librdkafka rejects the brokers or no port is free.
    pub async fn new(kafka: Kafka, api: &str, plan: Plan) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let orders_url = format!("http://{}", listener.local_addr()?);
        let load = VisitorLoad::new(api, &orders_url, plan.item.clone());
        let product = Product::new(kafka.clone(), plan)?;
        let (api, cancelled_percent) = (api.to_owned(), CANCELLED_PERCENT);
        let setup = Setup { kafka, api, pages: None, cancelled_percent };
        Ok(Self { product, orders: OrderService::new(setup)?, listener, orders_url, load })
    }

    /// The pages of the shop, to be merged into the public router.
    #[must_use]
    pub fn shop(&self) -> Shop {
        let (item, name) = item();
        Shop { checkout: self.orders.checkout(), item, name }
    }

    /// Starts all services. They run until the shutdown.
    pub fn start(self, shutdown: &Shutdown) -> (DemoHandles, DemoTasks) {
        let Self { product, orders, listener, load, .. } = self;
        let stop = || shutdown.token().clone();
        let outcomes = Arc::<OutcomeCounts>::default();
        let handles = DemoHandles {
            sale: product.progress(),
            checkout: orders.checkout(),
            outcomes: Arc::clone(&outcomes),
            line_client: load.line_client(),
        };
        let (running, ended) = mpsc::channel(1);
        let running = || running.clone();
        shutdown.spawn("product service", tracked(product.run(stop()), running()));
        shutdown.spawn("order service", tracked(orders.run(listener, stop()), running()));
        shutdown.spawn("visitors", tracked(load.run(outcomes, stop()), running()));
        (handles, DemoTasks(ended))
    }
}

impl DemoTasks {
    /// Waits until all tasks have ended. An embedded broker has to run until then.
    pub async fn join(mut self) {
        while self.0.recv().await.is_some() {}
    }
}

/// Holds the sender while the task runs; the channel closes when the last task ends.
async fn tracked(work: impl Future<Output = ()>, _running: mpsc::Sender<()>) {
    work.await;
}

impl DemoHandles {
    /// Prints the progress to stdout until the shutdown.
    pub fn narrate(self, shutdown: &Shutdown) {
        let stop = shutdown.token().clone();
        let narrator = Narrator::new(self);
        shutdown.spawn("narrator", async move {
            stop.run_until_cancelled(narrator.run()).await;
        });
    }
}

/// 500 seats, which sell in about two minutes, and 200 more after each sell-out, so that the demo shows the same at
/// any later time.
#[must_use]
pub fn sale_plan() -> Plan {
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

/// Sets the policy of the line, as an operator does before a sale. Version 0, so that the first change of the
/// product service replaces the rest of the item.
///
/// # Errors
/// If the store is unavailable.
pub async fn set_policy(store: &dyn ItemStore, now: Millis) -> daegi_store::Result<ItemId> {
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

/// Where users of the demo continue after the wait.
const SHOP_URL: &str = "/shop";

/// At most 20 entries. Entries (45 s) and grace (20 s) are short because the demo is, but long enough for a human to
/// find the button.
fn policy() -> Policy {
    let shop = PageLink { url: SHOP_URL.to_owned(), label: None };
    Policy {
        max_active: Some(20),
        pass_ttl_seconds: 45,
        grace_seconds: 20,
        missed_keep_seconds: 60,
        entry_url: Some(ENTRY_URL.to_owned()),
        page: Branding {
            links: PageLinks { home: Some(shop), ..PageLinks::default() },
            ..Branding::default()
        },
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
    fn the_item_and_its_policy_are_valid() {
        assert_eq!(policy().check(), Ok(()));
        assert_eq!(sale_plan().item.as_str(), ITEM);
    }
}
