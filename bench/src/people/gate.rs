//! A line that is let in by a leader's scripts, one after the other. They are the same every time.

use anyhow::ensure;
use daegi_domain::Policy;
use daegi_store::{CHUNK, Epoch, RedisStore, Store};

use super::arena::{LATER, now};
use super::line::Line;

/// Everybody at once, in one line: the worst case for one script and one partition.
pub(super) const PEOPLE: u32 = 200_000;
/// So many calls do that.
pub(super) const CALLS: usize = (PEOPLE / CHUNK) as usize;
/// So many batches of the outbox are read at once, as by the relay.
const BATCHES: u32 = 10;

/// People who wait, all of them seen lately.
pub(super) struct Gate<'a> {
    store: &'a RedisStore,
    line: Line,
    epoch: Epoch,
}

impl<'a> Gate<'a> {
    pub(super) async fn fill(store: &'a RedisStore) -> anyhow::Result<Self> {
        let line = Line::fill(store, "gate", PEOPLE as usize).await?;
        line.set_policy(store, &Policy::default()).await?;
        line.was_seen(store, now() + LATER).await?;
        Ok(Self { store, line, epoch: store.begin_term(0).await? })
    }

    /// Lets everybody in and empties the outbox.
    pub(super) async fn open(self) -> anyhow::Result<()> {
        let (item, round) = (&self.line.item, now() + LATER);
        let mut left = PEOPLE;
        while left > 0 {
            let done = self.store.admit(self.epoch, item, left, 0, u64::MAX, round).await?;
            ensure!(done.admitted == left.min(CHUNK), "not everybody was let in: {done:?}");
            left -= done.admitted;
        }
        for partition in 0..self.store.partitions() {
            loop {
                let batches = self.store.outbox_read(partition, None, BATCHES).await?;
                if batches.is_empty() {
                    break;
                }
                let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
                self.store.outbox_ack(partition, &ids).await?;
            }
        }
        Ok(self.store.purge(item).await?)
    }
}
