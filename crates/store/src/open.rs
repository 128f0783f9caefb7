use std::sync::Arc;
use std::time::Duration;

use daegi_domain::Settings;
use tracing::{info, warn};

use crate::{MemoryStore, RedisStore, Result, SharedStore};

/// The rest between two attempts to open a store that is away.
const OPEN_AGAIN: Duration = Duration::from_millis(500);

/// Opens the store at a Redis address, or a new one in memory where there is none. A server that
/// is away is waited for: a fleet starts in any order. `settings` count only for a store that has
/// never been used.
///
/// # Errors
/// If waiting would not help: see [`crate::Error::is_misconfigured`].
pub async fn open(redis: Option<&str>, partitions: u16, settings: Settings) -> Result<SharedStore> {
    let Some(url) = redis else {
        return Ok(Arc::new(MemoryStore::new(partitions, settings)));
    };
    let mut waited = false;
    loop {
        match RedisStore::open(url, partitions, settings).await {
            Err(error) if error.is_transient() => {
                if !std::mem::replace(&mut waited, true) {
                    warn!(%error, "waiting for the store");
                }
                tokio::time::sleep(OPEN_AGAIN).await;
            }
            opened => {
                if waited {
                    info!("the store is there");
                }
                return Ok(Arc::new(opened?));
            }
        }
    }
}
