//! Items. Updates of product services are applied in batches: one script call per batch of a partition.
//! Partitions run concurrently, each in order.

use std::collections::BTreeMap;

use ::redis::Value;
use async_trait::async_trait;
use daegi_domain::{
    Item, ItemChange, ItemId, ItemUpdate, ItemUpdateKind, Lane, LogPosition, Millis, Number,
    OpeningChange, Policy, PolicyChange,
};
use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::keys::PartitionKeys;
use super::scripts::{ScriptInvocation, scripts};
use super::{MAX_CONCURRENT_CALLS, RedisStore, generation, item_hash, reply};
use crate::limits::{CONTROL_LOG, MAX_USERS_PER_CALL};
use crate::types::{ItemUpdateOutcome, PolicyUpdateOutcome, PutOutcome, ReplayState};
use crate::{ItemStore, Result, partition_of};

/// Item batches in flight: enough to keep Redis busy. Further batches wait in this process, because
/// requests of users would wait behind them in Redis.
pub(super) const MAX_ITEM_BATCHES: usize = 4;

/// Changes of items of one partition, in order.
type Changes<'a> = Vec<(&'a ItemChange, Option<LogPosition>)>;

#[async_trait]
impl ItemStore for RedisStore {
    async fn put_item(&self, change: &ItemChange, now: Millis) -> Result<PutOutcome> {
        self.put_single(change, now).await
    }

    async fn remove_item(&self, id: &ItemId, now: Millis) -> Result<bool> {
        Ok(self.remove(id, None, None, now).await? == ItemUpdateOutcome::Removed)
    }

    async fn apply_item_updates(
        &self,
        updates: &[ItemUpdate],
        now: Millis,
    ) -> Result<Vec<ItemUpdateOutcome>> {
        self.apply_updates(updates, now).await
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>> {
        let hash = self.command(::redis::cmd("HGETALL").arg(&self.keys(id).item)).await?;
        item_hash::item(id, hash)
    }

    async fn items(&self) -> Result<Vec<Item>> {
        let ids = self.members(|partition| partition.items.clone()).await?;
        let shown = ids.into_iter().filter(|id| !id.is_reserved());
        let items = stream::iter(shown.map(|id| async move { self.item(&id).await }));
        items
            .buffered(MAX_CONCURRENT_CALLS)
            .try_filter_map(|item| async { Ok(item) })
            .try_collect()
            .await
    }

    async fn item_ids(&self) -> Result<Vec<ItemId>> {
        self.members(|partition| partition.items.clone()).await
    }

    async fn set_policy(
        &self,
        id: &ItemId,
        change: &PolicyChange,
        revision: u64,
        now: Millis,
    ) -> Result<PolicyUpdateOutcome> {
        let mut script = self.all_lanes_script(id, |scripts| &scripts.set_policy);
        let replaces = change.opening == OpeningChange::Replaced;
        script.arg(revision).arg(now).arg(if replaces { "1" } else { "" });
        let mut fields = item_hash::policy(&change.policy);
        if replaces {
            fields.extend(item_hash::new_draw(change.reveal));
        }
        fields.iter().for_each(|(field, value)| {
            script.arg(*field).arg(value);
        });
        reply::policy_update(id, self.run(script).await?)
    }

    async fn set_paused(&self, id: &ItemId, paused: bool, now: Millis) -> Result<Option<Item>> {
        let mut script = self.line_script(id, Lane::STANDARD, |scripts| &scripts.set_paused);
        script.arg(u8::from(paused)).arg(now);
        item_hash::item(id, self.run(script).await?)
    }

    async fn reset(&self, id: &ItemId, now: Millis) -> Result<Option<Item>> {
        let mut script = self.all_lanes_script(id, |scripts| &scripts.reset);
        script.arg(now);
        item_hash::item(id, self.run(script).await?)
    }

    async fn purge(&self, id: &ItemId) -> Result<()> {
        let mut script = self.line_script(id, Lane::STANDARD, |scripts| &scripts.purge);
        script.arg(id.as_str());
        self.run(script).await
    }
}

impl RedisStore {
    async fn put_single(&self, change: &ItemChange, now: Millis) -> Result<PutOutcome> {
        let partition = partition_of(&change.id, self.partitions);
        let script = self.put_items(partition, &[(change, None)], true, now);
        let reply: Vec<Vec<Value>> = self.run(script).await?;
        reply::put(&change.id, reply.into_iter().next().unwrap_or_default())
    }

    async fn apply_updates(
        &self,
        updates: &[ItemUpdate],
        now: Millis,
    ) -> Result<Vec<ItemUpdateOutcome>> {
        let mut partitions: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (index, update) in updates.iter().enumerate() {
            partitions.entry(partition_of(update.item(), self.partitions)).or_default().push(index);
        }
        let applied = partitions.iter().map(|(partition, indices)| async move {
            let updates: Vec<_> = indices.iter().map(|index| &updates[*index]).collect();
            self.apply_partition(*partition, &updates, now).await
        });
        let applied = try_join_all(applied).await?.into_iter().flatten();
        let mut outcomes: Vec<_> = partitions.into_values().flatten().zip(applied).collect();
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// Applies consecutive changes in one batch, and removals one by one, because removals are rare
    /// and touch every key of a line.
    async fn apply_partition(
        &self,
        partition: u16,
        updates: &[&ItemUpdate],
        now: Millis,
    ) -> Result<Vec<ItemUpdateOutcome>> {
        let mut outcomes = Vec::with_capacity(updates.len());
        let mut changes = Changes::new();
        for update in updates {
            match &update.kind {
                ItemUpdateKind::Upsert(change) => changes.push((change, Some(update.position))),
                ItemUpdateKind::Remove { id, version } => {
                    outcomes.extend(self.put_batch(partition, &changes, now).await?);
                    changes.clear();
                    outcomes.push(match self.is_control_read(partition).await? {
                        true => self.remove(id, *version, Some(update.position), now).await?,
                        false => ItemUpdateOutcome::Held,
                    });
                }
            }
        }
        outcomes.extend(self.put_batch(partition, &changes, now).await?);
        Ok(outcomes)
    }

    /// Returns whether the settings of items were restored to this partition.
    async fn is_control_read(&self, partition: u16) -> Result<bool> {
        let mut script = scripts().replay_state.invocation();
        script.key(PartitionKeys::new(partition).replays).arg(CONTROL_LOG);
        let state = self.run::<Option<String>>(script).await?;
        Ok(reply::replay_state(state.as_deref())? == ReplayState::Complete)
    }

    async fn put_batch(
        &self,
        partition: u16,
        changes: &Changes<'_>,
        now: Millis,
    ) -> Result<Vec<ItemUpdateOutcome>> {
        let mut outcomes = Vec::with_capacity(changes.len());
        for chunk in changes.chunks(MAX_USERS_PER_CALL as usize) {
            let script = self.put_items(partition, chunk, false, now);
            let _permit = self.item_batches.acquire().await;
            let tags: Vec<String> = self.run(script).await?;
            for tag in tags {
                outcomes.push(reply::item_update(&tag)?);
            }
        }
        Ok(outcomes)
    }

    fn put_items(
        &self,
        partition: u16,
        changes: &[(&ItemChange, Option<LogPosition>)],
        return_items: bool,
        now: Millis,
    ) -> ScriptInvocation<'static> {
        let mut script = scripts().put_items.invocation();
        let keys = PartitionKeys::new(partition);
        script.key(keys.items).key(keys.active).key(keys.generation);
        script.key(keys.replays).key(keys.changed_controls);
        script.arg(u8::from(return_items)).arg(now);
        script.arg(self.generation_of(partition)).arg(generation::new_id());
        // Only updates of product services have a position.
        let is_update = changes.iter().any(|(_, position)| position.is_some());
        script.arg(if is_update { CONTROL_LOG } else { "" });
        script.arg(2 * item_hash::opening_and_lanes(&Policy::default()).len());
        push_policy(&mut script, Some(&Policy::default()));
        for (change, position) in changes {
            script.key(self.keys(&change.id).item);
            script.arg(change.id.as_str()).arg(change.name.as_str()).arg(change.stock);
            script.arg(u8::from(change.enabled)).arg(item_hash::optional(change.version));
            push_position(&mut script, *position);
            push_policy(&mut script, change.policy.as_ref());
        }
        script
    }

    async fn remove(
        &self,
        id: &ItemId,
        version: Option<u64>,
        position: Option<LogPosition>,
        now: Millis,
    ) -> Result<ItemUpdateOutcome> {
        let mut script = self.all_lanes_script(id, |scripts| &scripts.remove_item);
        script.arg(id.as_str()).arg(now).arg(item_hash::optional(version));
        script.arg(Number::base_at(now).0);
        push_position(&mut script, position);
        reply::item_update(&self.run::<String>(script).await?)
    }
}

fn push_position(script: &mut ScriptInvocation<'_>, position: Option<LogPosition>) {
    script.arg(item_hash::optional(position.map(|position| position.offset)));
    script.arg(item_hash::optional(position.map(|position| position.at)));
}

/// Adds the number of arguments that follow, and these: field, value, …
fn push_policy(script: &mut ScriptInvocation<'_>, policy: Option<&Policy>) {
    let words = policy.map(item_hash::policy).unwrap_or_default();
    script.arg(2 * words.len());
    words.iter().for_each(|(field, value)| {
        script.arg(*field).arg(value);
    });
}
