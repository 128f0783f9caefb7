use std::fmt::Debug;

use async_trait::async_trait;
use daegi_domain::{ItemControl, ItemId, Millis};

use crate::Result;
use crate::types::Epoch;

/// Settings of items that survive a data loss, because the leader publishes them and the consumer restores
/// them. See `docs/adr/018-settings-that-survive.md`.
#[async_trait]
pub trait ControlStore: Debug + Send + Sync + 'static {
    /// Returns items of a partition whose settings changed since they were last published, at most `limit`,
    /// with their control versions. The longest unpublished ones come first.
    async fn changed_controls(&self, partition: u16, limit: u32) -> Result<Vec<(ItemId, u64)>>;

    /// Returns the current settings of an item, also of one that was removed. `None` if none of its settings
    /// was ever changed, or if the store does not know it.
    async fn control(&self, id: &ItemId) -> Result<Option<ItemControl>>;

    /// Records that settings of these control versions were published. An item whose settings changed
    /// meanwhile stays marked.
    async fn controls_published(&self, partition: u16, published: &[(ItemId, u64)]) -> Result<()>;

    /// Records the settings of an item as changed if they never were, or if the counter of its lobby moved
    /// and the last record is older than [`crate::CHECKPOINT_INTERVAL_MS`]. Returns whether it did. A step of
    /// the leader.
    async fn checkpoint_control(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<bool>;

    /// Restores the settings of an item from a record, if the store has older ones or none. The lines of the
    /// item continue above every number that may have been lost, and tickets issued from now on are not admitted
    /// before the recovery hold ends. Returns whether the record was newer.
    async fn restore_control(&self, control: &ItemControl, now: Millis) -> Result<bool>;
}
