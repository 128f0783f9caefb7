use std::time::Duration;

use daegi_domain::Settings;
use daegi_store::SharedStore;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::Result;
use crate::patience::in_time;

/// How old the settings may be.
const KEEP: Duration = Duration::from_millis(900);

/// The settings of all lines, read about once per second however many lines there are.
pub(crate) struct SharedSettings {
    store: SharedStore,
    last: Mutex<Option<(Settings, Instant)>>,
}

impl SharedSettings {
    pub(super) fn new(store: SharedStore) -> Self {
        Self { store, last: Mutex::default() }
    }

    /// What applies now. The lock is held during the call: one asks, the others wait for it.
    pub(super) async fn now(&self) -> Result<Settings> {
        let mut last = self.last.lock().await;
        if let Some((settings, at)) = *last
            && at.elapsed() < KEEP
        {
            return Ok(settings);
        }
        let at = Instant::now();
        let settings = in_time("settings", self.store.settings()).await?;
        *last = Some((settings, at));
        Ok(settings)
    }
}
