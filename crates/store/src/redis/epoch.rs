//! Epochs of leaders' terms. They only grow, even if a fail-over loses the latest ones.

use std::sync::atomic::Ordering;

use ::redis::cmd;
use futures_util::future::try_join_all;

use super::scripts::scripts;
use super::{RedisStore, keys};
use crate::{Epoch, Result};

impl RedisStore {
    /// Returns a new epoch above `floor`, after every partition has stored it.
    pub(super) async fn new_epoch(&self, floor: u64) -> Result<Epoch> {
        let mut above = self.epoch.load(Ordering::Relaxed).max(floor);
        loop {
            let epoch = self.increment_epoch(above).await?;
            match self.fence(epoch).await? {
                held if held <= epoch => return Ok(Epoch(epoch)),
                held => above = held,
            }
        }
    }

    /// Reads the stored epoch and keeps the highest one in this process, because a fail-over may
    /// lose it.
    pub(super) async fn observe_epoch(&self) -> Result<()> {
        let epoch: Option<u64> = self.command(cmd("GET").arg(keys::epoch())).await?;
        self.epoch.fetch_max(epoch.unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    /// Increments the stored epoch to a value above `above`: the highest epoch that this process has read,
    /// as leader or as standby. Otherwise, after a fail-over that lost the latest epochs, the epoch of an
    /// earlier leader would be issued again.
    async fn increment_epoch(&self, above: u64) -> Result<u64> {
        let mut increment = scripts().next_epoch.invocation();
        increment.key(keys::epoch()).arg(above);
        let epoch = self.run(increment).await?;
        self.epoch.fetch_max(epoch, Ordering::Relaxed);
        Ok(epoch)
    }

    /// Stores the epoch in every partition whose epoch is lower; returns the highest epoch of all.
    async fn fence(&self, epoch: u64) -> Result<u64> {
        let fences = self.all_partitions().map(|partition| {
            let mut script = scripts().fence.invocation();
            script.key(partition.fence).arg(epoch);
            self.run::<u64>(script)
        });
        Ok(try_join_all(fences).await?.into_iter().max().unwrap_or(epoch))
    }
}
