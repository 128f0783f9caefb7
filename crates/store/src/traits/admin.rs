use std::fmt::Debug;

use async_trait::async_trait;
use daegi_domain::{Millis, Settings};

use crate::Result;
use crate::types::{HeartbeatRecord, MemoryUsage, PutOperator};

/// Settings, the audit log, heartbeats and the state of the servers.
#[async_trait]
pub trait AdminStore: Debug + Send + Sync + 'static {
    /// Returns the settings of all lines.
    async fn settings(&self) -> Result<Settings>;

    /// Changes the given settings and returns all. When this returns, every partition has the new
    /// quota, so that no direct admission and no round uses an older one. If it fails, some partitions
    /// may have it: repeat the call. [`AdminStore::copy_settings`] completes it, too.
    async fn set_settings(
        &self,
        token_count_to_move: Option<u32>,
        tick_ms: Option<u32>,
    ) -> Result<Settings>;

    /// Writes the settings into every partition whose copy is older. The leader calls this regularly,
    /// because [`AdminStore::set_settings`] may fail half-way and a fail-over may lose the newest copy.
    async fn copy_settings(&self) -> Result<()> {
        Ok(())
    }

    /// Records a data loss that an operator declares: from `now` on and for
    /// [`crate::RECLAIM_WINDOW_MS`], numbers of earlier generations are reclaimed in every
    /// partition. Not one atomic step; calling it again is harmless.
    async fn declare_loss(&self, now: Millis) -> Result<()>;

    /// Appends a change by an operator to the audit log, which keeps the latest
    /// [`crate::MAX_AUDIT_ENTRIES`] entries.
    async fn append_audit(&self, entry: &str) -> Result<()>;

    /// Returns the audit log, newest entry first.
    async fn read_audit(&self, limit: u32) -> Result<Vec<String>>;

    /// Stores an operator under a name that no other has. At most [`crate::MAX_OPERATORS`] are stored.
    async fn put_operator(&self, name: &str, record: &str) -> Result<PutOperator>;

    /// Removes an operator; returns whether there was one of this name.
    async fn remove_operator(&self, name: &str) -> Result<bool>;

    /// Returns the records of all operators, sorted by name.
    async fn operators(&self) -> Result<Vec<String>>;

    /// Replaces the heartbeat of a process, and removes heartbeats older than
    /// [`crate::HEARTBEAT_RETENTION_MS`].
    async fn put_heartbeat(&self, process: &str, payload: &str, now: Millis) -> Result<()>;

    /// Returns the heartbeats that are not older than [`crate::HEARTBEAT_RETENTION_MS`], sorted by
    /// process.
    async fn heartbeats(&self, now: Millis) -> Result<Vec<HeartbeatRecord>>;

    /// Publishes how many tickets wait in all lines, as the leader counted them, for the limit of
    /// the whole store. The memory store ignores it, because it counts the tickets itself.
    async fn publish_waiting(&self, _tickets: u64) -> Result<()> {
        Ok(())
    }

    /// Returns the memory usage of the fullest server, or `None` for the memory store.
    async fn memory(&self) -> Result<Option<MemoryUsage>> {
        Ok(None)
    }

    /// Returns the clock of the store's server in Unix milliseconds, or `None` for the memory store. No
    /// rule uses it: [`crate::clock_skew`] compares it with the process's clock.
    async fn server_time(&self) -> Result<Option<Millis>> {
        Ok(None)
    }
}
