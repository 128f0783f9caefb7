//! Epochs only grow, whatever a fail-over loses.

use std::sync::atomic::Ordering;

use ::redis::cmd;
use futures_util::future::try_join_all;

use super::scripts::scripts;
use super::{RedisStore, keys};
use crate::{Epoch, Result};

impl RedisStore {
    /// An epoch beyond `floor` that leads every partition from now on.
    pub(super) async fn new_epoch(&self, floor: u64) -> Result<Epoch> {
        let mut beyond = self.epoch.load(Ordering::Relaxed).max(floor);
        loop {
            let epoch = self.next_epoch(beyond).await?;
            match self.fence(epoch).await? {
                held if held <= epoch => return Ok(Epoch(epoch)),
                held => beyond = held,
            }
        }
    }

    /// Notes which epoch was given last.
    pub(super) async fn look_at_epoch(&self) -> Result<()> {
        let epoch: Option<u64> = self.command(cmd("GET").arg(keys::epoch())).await?;
        self.epoch.fetch_max(epoch.unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    /// An epoch above every earlier one. A fail-over may lose the latest counts: `beyond` is the
    /// highest epoch this process has seen, its own and, because standbys read the count, its
    /// leader's. Otherwise the epoch of a leader from before the fail-over would lead again.
    async fn next_epoch(&self, beyond: u64) -> Result<u64> {
        let mut count = scripts().next_epoch.prepare_invoke();
        count.key(keys::epoch()).arg(beyond);
        let epoch = self.run(count).await?;
        self.epoch.fetch_max(epoch, Ordering::Relaxed);
        Ok(epoch)
    }

    /// Lets an epoch lead every partition; returns the latest that leads one.
    async fn fence(&self, epoch: u64) -> Result<u64> {
        let fences = self.all_partitions().map(|partition| {
            let mut script = scripts().fence.prepare_invoke();
            script.key(partition.fence).arg(epoch);
            self.run::<u64>(script)
        });
        Ok(try_join_all(fences).await?.into_iter().max().unwrap_or(epoch))
    }
}
