use ::redis::Value;
use async_trait::async_trait;
use daegi_domain::{ItemControl, ItemId, Lane, Millis};

use super::client::call_error::with_epoch;
use super::keys::PartitionKeys;
use super::scripts::scripts;
use super::{RedisStore, generation, item_hash, reply};
use crate::limits::CHECKPOINT_INTERVAL_MS;
use crate::types::Epoch;
use crate::{ControlStore, Result, partition_of};

#[async_trait]
impl ControlStore for RedisStore {
    async fn changed_controls(&self, partition: u16, limit: u32) -> Result<Vec<(ItemId, u64)>> {
        let mut range = ::redis::cmd("ZRANGE");
        range.arg(PartitionKeys::new(partition).changed_controls);
        range.arg(0).arg(i64::from(limit) - 1).arg("WITHSCORES");
        reply::changed_controls(self.command(&range).await?)
    }

    async fn control(&self, id: &ItemId) -> Result<Option<ItemControl>> {
        let script = self.all_lanes_script(id, |scripts| &scripts.item_control);
        reply::item_control(id, self.run::<Value>(script).await?)
    }

    async fn controls_published(&self, partition: u16, published: &[(ItemId, u64)]) -> Result<()> {
        if published.is_empty() {
            return Ok(());
        }
        let mut script = scripts().controls_published.invocation();
        script.key(PartitionKeys::new(partition).changed_controls);
        for (id, version) in published {
            script.arg(id.as_str()).arg(version);
        }
        self.run(script).await
    }

    async fn checkpoint_control(&self, epoch: Epoch, id: &ItemId, now: Millis) -> Result<bool> {
        let mut script =
            self.line_script(id, Lane::STANDARD, |scripts| &scripts.checkpoint_control);
        script.arg(epoch.0).arg(now).arg(CHECKPOINT_INTERVAL_MS);
        self.run(script).await.map_err(|error| with_epoch(epoch, error))
    }

    async fn restore_control(&self, control: &ItemControl, now: Millis) -> Result<bool> {
        let partition = partition_of(&control.id, self.partitions);
        let mut script = self.all_lanes_script(&control.id, |scripts| &scripts.restore_control);
        script.arg(control.id.as_str()).arg(control.control_version).arg(now);
        script.arg(self.recovery_hold).arg(self.generation_of(partition));
        script.arg(generation::new_id());
        script.arg(if control.item.is_some() { "" } else { "1" }).arg(control.version);
        let settings = control.item.as_ref().map(item_hash::settings).unwrap_or_default();
        let setting = |name| {
            let found = settings.iter().find(|(field, _)| *field == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        script.arg(setting("reveal")).arg(setting("drawSeed"));
        let product = item_hash::product(control);
        script.arg(4 * control.lines.len()).arg(2 * product.len());
        for line in &control.lines {
            script.arg(line.lane.index()).arg(line.valid_from.0).arg(line.tail.0);
            script.arg(item_hash::optional(line.first_waiting.map(|first| first.0)));
        }
        for (field, value) in product.iter().chain(&settings) {
            script.arg(*field).arg(value);
        }
        self.run(script).await
    }
}
