//! `product-service`: one sale, published over Kafka.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Parser;
use daegi_domain::{ItemId, ItemName, Topics};
use daegi_storefront::product::{Plan, Product, Progress};
use daegi_storefront::{Kafka, stop_on_signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Sells one item: opens, counts orders, restocks once, closes.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// The brokers, `host:port,…`.
    #[arg(long, default_value = "127.0.0.1:9092")]
    kafka: String,
    /// The item.
    #[arg(long, default_value = "concert", value_parser = ItemId::parse)]
    item: ItemId,
    /// Its display name.
    #[arg(long, default_value = "Friday 8 pm concert", value_parser = ItemName::parse)]
    name: ItemName,
    /// Stock at the opening.
    #[arg(long, default_value_t = 100)]
    stock: u32,
    /// Stock added after a sell-out.
    #[arg(long, default_value_t = 50)]
    restock: u32,
    /// Number of restocks.
    #[arg(long, default_value_t = 1)]
    restocks: u32,
    /// Delay from a sell-out to the restock.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    restock_after: Duration,
    /// Delay from the last sell-out to the close.
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    linger: Duration,
    /// Maximum duration of the sale.
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
    let (stop, logging) = (CancellationToken::new(), log_progress(product.progress()));
    tokio::join!(product.run(stop.clone()), logging, stop_on_signal(stop));
    Ok(())
}

/// Logs every change.
async fn log_progress(mut progress: watch::Receiver<Progress>) {
    while progress.changed().await.is_ok() {
        let Progress { phase, stock, sold, .. } = *progress.borrow_and_update();
        tracing::info!(?phase, stock, sold, "item.changed published");
    }
}
