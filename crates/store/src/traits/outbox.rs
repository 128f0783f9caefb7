use std::fmt::Debug;

use async_trait::async_trait;

use crate::Result;
use crate::types::OutboxBatch;

/// Stored events that are not published yet.
#[async_trait]
pub trait OutboxStore: Debug + Send + Sync + 'static {
    /// Returns the oldest batches of a partition's outbox, in order; with `after`, those later than
    /// the batch of that id, even if that batch was acknowledged.
    async fn outbox_read(
        &self,
        partition: u16,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OutboxBatch>>;

    /// Removes batches that were published. Removing one twice is harmless.
    async fn outbox_ack(&self, partition: u16, ids: &[String]) -> Result<()>;

    /// Counts the events in a partition's outbox.
    async fn outbox_len(&self, partition: u16) -> Result<u64>;
}
