use std::fmt::Debug;

use async_trait::async_trait;

use crate::Result;
use crate::types::ReplayState;

/// How far the logs of product and order services were replayed.
#[async_trait]
pub trait ReplayStore: Debug + Send + Sync + 'static {
    /// Returns how far this store has replayed a log. The state is stored beside the items in every
    /// partition and is valid for one server only, so that a store that lost items lost it, too.
    async fn replay_state(&self, log: &str) -> Result<ReplayState>;

    /// Records that a replay of the log has started, unless its state is already recorded.
    async fn begin_replay(&self, log: &str) -> Result<()>;

    /// Records that the replay is complete. Returns false if items were lost since
    /// [`ReplayStore::begin_replay`].
    async fn complete_replay(&self, log: &str) -> Result<bool>;
}
