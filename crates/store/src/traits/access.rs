use std::fmt::Debug;

use async_trait::async_trait;
use daegi_domain::{AccessEvent, Millis};

use crate::Result;
use crate::types::{AccessChange, AccessLog, AccessOutcome, AccessRules};

/// The block and allow list, and what happened because of it.
#[async_trait]
pub trait AccessStore: Debug + Send + Sync + 'static {
    /// Returns the revision of the list, which differs after every change; 0 if the list never changed. Cheap, because
    /// every pod calls it once per second.
    async fn access_revision(&self) -> Result<u64>;

    /// Returns the list. Not one atomic step: a change during the call may be missing, and the returned revision
    /// is then an older one than [`AccessStore::access_revision`] returns.
    async fn access_rules(&self) -> Result<AccessRules>;

    /// Changes the list and records the events of what changed, removals first. Nothing changes if rules would be added
    /// beyond [`crate::MAX_ACCESS_RULES`].
    async fn change_access(&self, change: &AccessChange, now: Millis) -> Result<AccessOutcome>;

    /// Appends events to a log, which keeps the latest [`crate::MAX_ACCESS_EVENTS`] events.
    async fn append_access_events(&self, log: AccessLog, events: &[AccessEvent]) -> Result<()>;

    /// Returns the events of a log, newest first.
    async fn access_events(&self, log: AccessLog, limit: u32) -> Result<Vec<AccessEvent>>;
}
