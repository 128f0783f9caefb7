use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{Settings, StoreLimits};
use tracing::{info, warn};

use crate::redis::client::backoff;
use crate::{LeaveLimit, MemoryStore, RedisConfig, RedisStore, Result, SharedStore};

/// Opens the store in Redis, or a new memory store without one. While Redis is unreachable,
/// retries without limit, because the processes of a fleet start in any order. `settings` apply
/// only to a store without settings. A line that lost data admits no ticket for `recovery_hold`.
///
/// # Errors
/// If a retry would not help: see [`crate::Error::is_misconfigured`].
pub async fn open(
    redis: Option<&RedisConfig>,
    partitions: u16,
    settings: Settings,
    recovery_hold: Duration,
    limits: StoreLimits,
) -> Result<SharedStore> {
    let recovery_hold = u64::try_from(recovery_hold.as_millis()).unwrap_or(u64::MAX);
    let leave_limit = LeaveLimit(limits.leave_limit);
    let Some(redis) = redis else {
        return Ok(Arc::new(
            MemoryStore::new(partitions, settings)
                .with_recovery_hold(recovery_hold)
                .with_max_waiting(limits.max_waiting)
                .with_leave_limit(leave_limit),
        ));
    };
    let mut failures = 0;
    loop {
        match RedisStore::open_with(redis, partitions, settings, limits).await {
            Err(error) if error.is_transient() => {
                if failures == 0 {
                    warn!(%error, "store unreachable, retrying");
                }
                failures += 1;
                tokio::time::sleep(backoff::delay(failures)).await;
            }
            opened => {
                if failures > 0 {
                    info!("connected to store");
                }
                let store = opened?.with_recovery_hold(recovery_hold);
                return Ok(Arc::new(store.with_leave_limit(leave_limit)));
            }
        }
    }
}
