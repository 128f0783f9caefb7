//! The heartbeat of this consumer in the store, with its lag.

use std::sync::Arc;
use std::time::Duration;

use daegi_domain::Heartbeat;
use daegi_kafka::LagHandle;
use daegi_runtime::Clock;
use daegi_runtime::process::process_name;
use daegi_store::AdminStore;

/// Interval between two heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);

/// Writes heartbeats. Never returns; a heartbeat that fails is skipped.
pub(crate) async fn run(store: Arc<dyn AdminStore>, clock: Clock, lags: Vec<LagHandle>) {
    let name = process_name();
    loop {
        let lag = lags.iter().map(|lag| (lag.topic().event_type().to_owned(), lag.messages()));
        let heartbeat = Heartbeat::Consumer { lag: lag.collect() };
        if let Ok(text) = serde_json::to_string(&heartbeat)
            && let Err(error) = store.put_heartbeat(&name, &text, clock.now_ms()).await
        {
            tracing::debug!(%error, "heartbeat not written");
        }
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
}
