//! Tells operators, by way of the store, that this consumer is there and how far it is behind.

use std::time::Duration;

use daegi_domain::Presence;
use daegi_kafka::Lag;
use daegi_runtime::Clock;
use daegi_runtime::process::replica_name;
use daegi_store::SharedStore;

/// How often it says so.
const PACE: Duration = Duration::from_secs(2);

/// What a consumer says about itself, for ever. A store that is away misses a notice, no more.
pub(crate) async fn tell(store: SharedStore, clock: Clock, lags: Vec<Lag>) {
    let name = replica_name();
    loop {
        let lag = lags.iter().map(|lag| (lag.topic().event_type().to_owned(), lag.messages()));
        let said = Presence::Consumer { lag: lag.collect() };
        if let Ok(text) = serde_json::to_string(&said)
            && let Err(error) = store.post_notice(&name, &text, clock.now_ms()).await
        {
            tracing::debug!(%error, "no notice posted");
        }
        tokio::time::sleep(PACE).await;
    }
}
