use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{Settings, StoreLimits};
use tracing::{info, warn};

use crate::redis::backoff;
use crate::{LeaveLimit, MemoryStore, RedisStore, Result, SharedStore};

/// Opens the store at a Redis address, or a new one in memory where there is none. A server that
/// is away is waited for: a fleet starts in any order. `settings` count only for a store that has
/// never been used. A line that lost data lets nobody in for `hold`.
///
/// # Errors
/// If waiting would not help: see [`crate::Error::is_misconfigured`].
pub async fn open(
    redis: Option<&str>,
    partitions: u16,
    settings: Settings,
    hold: Duration,
    limits: StoreLimits,
) -> Result<SharedStore> {
    let hold = u64::try_from(hold.as_millis()).unwrap_or(u64::MAX);
    let leave_limit = LeaveLimit(limits.leave_limit);
    let Some(url) = redis else {
        return Ok(Arc::new(
            MemoryStore::new(partitions, settings)
                .with_recovery_hold(hold)
                .with_max_waiting(limits.max_waiting)
                .with_leave_limit(leave_limit),
        ));
    };
    let mut failures = 0;
    loop {
        match RedisStore::open_with(url, partitions, settings, limits).await {
            Err(error) if error.is_transient() => {
                if failures == 0 {
                    warn!(%error, "waiting for the store");
                }
                failures += 1;
                tokio::time::sleep(backoff::pause(failures)).await;
            }
            opened => {
                if failures > 0 {
                    info!("the store is there");
                }
                let store = opened?.with_recovery_hold(hold);
                return Ok(Arc::new(store.with_leave_limit(leave_limit)));
            }
        }
    }
}
