//! `order-service`: places orders for users with a pass.

use std::io::IsTerminal;
use std::net::SocketAddr;

use clap::Parser;
use daegi_domain::Topics;
use daegi_storefront::order::{OrderService, Setup};
use daegi_storefront::{Kafka, stop_on_signal};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Reads admissions, checks passes offline and publishes how orders ended.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// The brokers, `host:port,…`.
    #[arg(long, default_value = "127.0.0.1:9092")]
    kafka: String,
    /// Public URL of daegi, which publishes the keys of passes.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    api: String,
    /// Public URL of daegi as browsers reach it, for links to the waiting page. Default: `--api`.
    #[arg(long)]
    pages: Option<String>,
    /// Listen address.
    #[arg(long, default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Percentage of cancelled orders.
    #[arg(long, default_value_t = 5)]
    cancelled_percent: u8,
    /// Only ask the process that listens there whether it is ready: exit 0 if it is. For health
    /// checks of containers without a shell.
    #[arg(long)]
    healthcheck: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter("info,daegi_storefront=debug")
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
    let Options { kafka, api, pages, listen, cancelled_percent, healthcheck } = Options::parse();
    if healthcheck {
        return check_health(listen).await;
    }
    let listener = TcpListener::bind(listen).await?;
    let kafka = Kafka { brokers: kafka, topics: Topics::default() };
    let service = OrderService::new(Setup { kafka, api, pages, cancelled_percent })?;
    let stop = CancellationToken::new();
    tracing::info!("listening at http://{}/orders", listener.local_addr()?);
    tokio::join!(service.run(listener, stop.clone()), stop_on_signal(stop));
    Ok(())
}

/// Fails unless the service beside this process is ready.
async fn check_health(listen: SocketAddr) -> anyhow::Result<()> {
    let url = format!("http://127.0.0.1:{}/readyz", listen.port());
    reqwest::get(url).await?.error_for_status()?;
    Ok(())
}
