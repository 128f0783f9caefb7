//! `order-service`: takes orders from whoever brings a pass.

use std::io::IsTerminal;
use std::net::SocketAddr;

use clap::Parser;
use daegi_domain::Topics;
use daegi_neighbours::order::{OrderService, Setup};
use daegi_neighbours::{Kafka, stop_on_signal};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Hears who was let in, checks passes offline, says how orders ended.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// The brokers, `host:port,…`.
    #[arg(long, default_value = "127.0.0.1:9092")]
    kafka: String,
    /// daegi's public address, where its keys are published.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    api: String,
    /// The same address as people reach it, where they are sent to wait. `--api` if it is the same.
    #[arg(long)]
    pages: Option<String>,
    /// Where orders are taken.
    #[arg(long, default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// How many of a hundred orders are cancelled.
    #[arg(long, default_value_t = 5)]
    cancelled_percent: u8,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter("info,daegi_neighbours=debug")
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let Options { kafka, api, pages, listen, cancelled_percent } = Options::parse();
    let listener = TcpListener::bind(listen).await?;
    let kafka = Kafka { brokers: kafka, topics: Topics::default() };
    let service = OrderService::new(Setup { kafka, api, pages, cancelled_percent })?;
    let stop = CancellationToken::new();
    tracing::info!("orders are taken at http://{}/orders", listener.local_addr()?);
    tokio::join!(service.run(listener, stop.clone()), stop_on_signal(stop));
    Ok(())
}
