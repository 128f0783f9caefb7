//! The contract of a store, by role. A caller takes the role it needs.
//!
//! Every method is one atomic step on one line, unless its documentation states otherwise. `now` is
//! the caller's clock in Unix milliseconds.
//!
//! A signature stands in the trait, in both stores and in the testkit's `InterceptedStore`: Rust has no
//! way to implement a method without repeating it.

mod access;
mod admin;
mod admission;
mod control;
mod history;
mod item;
mod opening;
mod outbox;
mod pace;
mod replay;
mod signals;
mod ticket;

use std::sync::Arc;

use async_trait::async_trait;
use daegi_domain::ItemId;
use futures_util::future::try_join_all;

pub use self::access::AccessStore;
pub use self::admin::AdminStore;
pub use self::admission::AdmissionStore;
pub use self::control::ControlStore;
pub use self::history::HistoryStore;
pub use self::item::ItemStore;
pub use self::opening::OpeningStore;
pub use self::outbox::OutboxStore;
pub use self::pace::PaceStore;
pub use self::replay::ReplayStore;
pub use self::signals::SignalStore;
pub use self::ticket::TicketStore;
use crate::{LockBackend, Result};

/// The store that all components of a process share.
pub type SharedStore = Arc<dyn Store>;

/// A store with all roles.
#[async_trait]
pub trait Store:
    ItemStore
    + ReplayStore
    + TicketStore
    + AdmissionStore
    + OpeningStore
    + ControlStore
    + OutboxStore
    + PaceStore
    + AdminStore
    + AccessStore
    + SignalStore
    + HistoryStore
{
    /// Returns how many partitions the store has.
    fn partitions(&self) -> u16;

    /// Checks that the store replies.
    async fn ping(&self) -> Result<()>;

    /// Returns the lock that elects the leader.
    fn lock(&self) -> &dyn LockBackend;

    /// Lists the active lines of all partitions, sorted. Not one atomic step.
    async fn active_lines(&self) -> Result<Vec<ItemId>> {
        let lines = (0..self.partitions()).map(|partition| self.active_lines_in(partition));
        let mut lines: Vec<_> = try_join_all(lines).await?.into_iter().flatten().collect();
        lines.sort_unstable();
        Ok(lines)
    }
}
