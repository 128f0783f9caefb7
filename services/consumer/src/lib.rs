//! The consumer: reads what product and order services say into the store.
//!
//! With Kafka off, the only choice so far, nobody says anything: the consumer answers for its
//! health and waits. Items are then changed by hand, through the admin API of the scheduler.

use daegi_runtime::health::Part;
use daegi_runtime::http::{Limits, guarded, serve};
use daegi_runtime::{Config, Health, KafkaConfig, Shutdown};
use tokio::net::TcpListener;

/// Starts to read. Ready at once where there is nothing to read.
pub fn start(kafka: &KafkaConfig, health: &Part) {
    tracing::info!(?kafka, "no events are read yet");
    health.set_ready();
}

/// Runs one replica until the shutdown.
pub async fn run(config: Config, listener: TcpListener, shutdown: Shutdown) {
    let health = Health::new(&shutdown);
    start(&config.kafka, &health.part("consumer"));
    let router = guarded(health.router());
    serve(listener, router, Limits::from(&config), shutdown).await;
}
