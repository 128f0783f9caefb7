//! The generation of each partition's data: an id that is written with the partition and lost with it.
//!
//! A process keeps the id that it found or wrote when it opened the store until it exits, and
//! passes it to every script that may reclaim tickets. A script that finds another id, or none, has
//! evidence that the partition lost its data since. A process that starts on an empty store knows
//! only the new id and gives no evidence. See `docs/adr/015-store-generations.md`.

use daegi_domain::{ItemId, Millis};
use futures_util::future::try_join_all;

use super::RedisStore;
use super::scripts::{ScriptInvocation, scripts};
use crate::{Result, partition_of};

/// Returns a new id: 16 hexadecimal digits. All ids have the same length.
pub(super) fn new_id() -> String {
    format!("{:016x}", fastrand::u64(..))
}

impl RedisStore {
    /// Returns the generation of each partition; a partition without one receives one.
    pub(super) async fn open_partitions(&self) -> Result<Vec<String>> {
        let opened = self.all_partitions().map(|partition| {
            let mut open = scripts().open_partition.invocation();
            open.key(partition.generation).arg(new_id());
            self.run::<String>(open)
        });
        try_join_all(opened).await
    }

    /// Records a loss in every partition.
    pub(super) async fn record_loss(&self, now: Millis) -> Result<()> {
        let recorded = self.all_partitions().map(|partition| {
            let mut declare = scripts().declare_loss.invocation();
            declare.key(partition.generation).arg(new_id()).arg(now);
            self.run::<()>(declare)
        });
        try_join_all(recorded).await.map(drop)
    }

    /// Returns the generation that this process found when it opened the partition.
    pub(super) fn generation_of(&self, partition: u16) -> &str {
        self.generations.get(usize::from(partition)).map_or("", String::as_str)
    }

    /// Passes what `check_generation` in `scripts/prelude/generation.lua` needs.
    pub(super) fn pass_generation(&self, script: &mut ScriptInvocation<'_>, id: &ItemId) {
        script.arg(self.generation_of(partition_of(id, self.partitions))).arg(new_id());
    }
}
