use std::fmt::Debug;

use async_trait::async_trait;
use daegi_domain::{Item, ItemChange, ItemId, ItemUpdate, Millis, PolicyChange};

use crate::Result;
use crate::types::{ItemUpdateOutcome, PolicyUpdateOutcome, PutOutcome};

/// Items and their policies.
#[async_trait]
pub trait ItemStore: Debug + Send + Sync + 'static {
    /// Creates or changes an item. Creating it opens its line: the counter starts at
    /// [`daegi_domain::Number::base_at`] and never goes back.
    async fn put_item(&self, change: &ItemChange, now: Millis) -> Result<PutOutcome>;

    /// Removes an item for an operator. Its line ends as in [`ItemStore::reset`]; entries live until
    /// they end. Returns false if there is no such item.
    async fn remove_item(&self, id: &ItemId, now: Millis) -> Result<bool>;

    /// Applies updates of product services in this order, one outcome each. Each is one atomic step
    /// on one item. An update whose version is not newer than the stored one changes nothing, nor
    /// does a removal without a version whose log position was applied before. The store keeps the
    /// version of a removal, so that an older event cannot create the item again. All updates of a partition
    /// are held until the log [`crate::CONTROL_LOG`] was read to its end, because a store that lost data must
    /// have the settings of an item before the item.
    async fn apply_item_updates(
        &self,
        updates: &[ItemUpdate],
        now: Millis,
    ) -> Result<Vec<ItemUpdateOutcome>>;

    /// Returns one item.
    async fn item(&self, id: &ItemId) -> Result<Option<Item>>;

    /// Returns all items, sorted by id, without reserved ones. Not one atomic step.
    async fn items(&self) -> Result<Vec<Item>>;

    /// Returns the ids of all items, in any order. Not one atomic step.
    async fn item_ids(&self) -> Result<Vec<ItemId>> {
        Ok(self.items().await?.into_iter().map(|item| item.id).collect())
    }

    /// Replaces the policy of an item whose revision is still `revision`. Another opening is refused while
    /// tickets are in the line.
    async fn set_policy(
        &self,
        id: &ItemId,
        change: &PolicyChange,
        revision: u64,
        now: Millis,
    ) -> Result<PolicyUpdateOutcome>;

    /// Pauses or resumes admission. Returns `None` if there is no such item.
    async fn set_paused(&self, id: &ItemId, paused: bool, now: Millis) -> Result<Option<Item>>;

    /// Ends the line: all tickets that wait, return or missed their turn become
    /// [`crate::TicketState::Restarted`], and the next number is the first of the new line. Entries
    /// stay until they complete, leave or expire. No event is written. Returns `None` if there is no
    /// such item.
    async fn reset(&self, id: &ItemId, now: Millis) -> Result<Option<Item>>;

    /// Deletes a line with its item and tickets and keeps no record of them; for reserved lines
    /// only.
    async fn purge(&self, id: &ItemId) -> Result<()>;
}
