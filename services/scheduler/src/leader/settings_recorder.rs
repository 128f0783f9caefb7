//! Records the settings of items that an earlier release changed, so that they survive a data loss, too.

use daegi_domain::{Item, Policy};
use daegi_runtime::Clock;
use daegi_runtime::outage::OutageLog;
use daegi_store::{Epoch, Error, Result, Store};

use super::TICK_RETRY_INTERVAL;

/// Records these settings once in a term. Never returns, because a return would end the term.
pub(super) async fn run(store: &dyn Store, epoch: Epoch, clock: &Clock) {
    let mut outage = OutageLog::new("settings recorder");
    loop {
        match record(store, epoch, clock).await {
            Ok(items) => {
                outage.recovered();
                if items > 0 {
                    tracing::info!(items, "settings of an earlier release recorded");
                }
                break;
            }
            // The ticks end the term.
            Err(Error::StaleEpoch(_)) => break,
            Err(error) => {
                outage.failed(&error);
                tokio::time::sleep(TICK_RETRY_INTERVAL).await;
            }
        }
    }
    std::future::pending().await
}

async fn record(store: &dyn Store, epoch: Epoch, clock: &Clock) -> Result<usize> {
    let mut recorded = 0;
    for item in store.items().await?.iter().filter(|item| is_unrecorded(item)) {
        recorded += usize::from(store.checkpoint_control(epoch, &item.id, clock.now_ms()).await?);
    }
    Ok(recorded)
}

/// Returns whether Kafka has no record of this item's settings, and its product service does not have them.
fn is_unrecorded(item: &Item) -> bool {
    let is_default = item.version > 0 && !item.paused && item.policy == Policy::default();
    item.control_version == 0 && !is_default
}
