use async_trait::async_trait;

use super::keys::PartitionKeys;
use super::scripts::scripts;
use super::{RedisStore, reply};
use crate::types::OutboxBatch;
use crate::{OutboxStore, Result};

#[async_trait]
impl OutboxStore for RedisStore {
    async fn outbox_read(
        &self,
        partition: u16,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<OutboxBatch>> {
        let outbox = PartitionKeys::new(partition).outbox;
        let from = after.map_or_else(|| "-".into(), |id| format!("({id}"));
        let mut range = ::redis::cmd("XRANGE");
        range.arg(outbox).arg(from).arg("+").arg("COUNT").arg(limit);
        reply::outbox(self.command(&range).await?)
    }

    async fn outbox_ack(&self, partition: u16, ids: &[String]) -> Result<()> {
        let keys = PartitionKeys::new(partition);
        let mut script = scripts().outbox_ack.invocation();
        script.key(keys.outbox).key(keys.outbox_events).key(keys.outbox_admissions).arg(ids);
        self.run(script).await
    }

    async fn outbox_len(&self, partition: u16) -> Result<u64> {
        let events = PartitionKeys::new(partition).outbox_events;
        let count: Option<u64> = self.command(::redis::cmd("GET").arg(events)).await?;
        Ok(count.unwrap_or(0))
    }
}
