//! `product-service`: one sale, announced over Kafka.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Parser;
use daegi_domain::{ItemId, ItemName, Topics};
use daegi_neighbours::product::{Plan, Product, Progress};
use daegi_neighbours::{Kafka, stop_on_signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Sells one item: opens, counts orders, restocks once, closes.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// The brokers, `host:port,…`.
    #[arg(long, default_value = "127.0.0.1:9092")]
    kafka: String,
    /// What is sold.
    #[arg(long, default_value = "concert", value_parser = ItemId::parse)]
    item: ItemId,
    /// Its name, for people.
    #[arg(long, default_value = "Friday 8 pm concert", value_parser = ItemName::parse)]
    name: ItemName,
    /// How many there are.
    #[arg(long, default_value_t = 100)]
    stock: u32,
    /// How many more come once it is sold out.
    #[arg(long, default_value_t = 50)]
    restock: u32,
    /// How often that happens.
    #[arg(long, default_value_t = 1)]
    restocks: u32,
    /// How long after that.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    restock_after: Duration,
    /// How long the line stays open when the last one is gone.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    linger: Duration,
    /// When the sale ends, sold out or not.
    #[arg(long, default_value = "1h", value_parser = humantime::parse_duration)]
    lasts: Duration,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_ansi(colours).with_writer(std::io::stderr).init();
    let Options { kafka, item, name, stock, restock, restocks, restock_after, linger, lasts } =
        Options::parse();
    let kafka = Kafka { brokers: kafka, topics: Topics::default() };
    let plan = Plan { item, name, stock, restock, restocks, restock_after, linger, lasts };
    let product = Product::new(kafka, plan)?;
    let (stop, telling) = (CancellationToken::new(), tell(product.progress()));
    tokio::join!(product.run(stop.clone()), telling, stop_on_signal(stop));
    Ok(())
}

/// A line in the log for every change.
async fn tell(mut progress: watch::Receiver<Progress>) {
    while progress.changed().await.is_ok() {
        let Progress { phase, stock, sold, .. } = *progress.borrow_and_update();
        tracing::info!(?phase, stock, sold, "item.changed published");
    }
}
