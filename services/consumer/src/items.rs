//! Events of product services: items are created, changed and removed.

use std::collections::HashMap;
use std::sync::Arc;

use daegi_domain::{ItemChanged, ItemId, ItemUpdate, ItemUpdateKind, LogPosition, Topic};
use daegi_kafka::{
    InboundMessage, MessageHandler, PartialFailure, Poison, ReplayProgress, RetryLater,
};
use daegi_runtime::Clock;
use daegi_store::{ItemStore, ItemUpdateOutcome};

use crate::ConsumerDeps;
use crate::error::{InvalidMessage, decode, retry_later};
use crate::replay::ReplayRecord;

/// The header of a tombstone with the version that removed the item.
const VERSION_HEADER: &str = "version";

/// Applies item events to the store.
#[derive(Debug)]
pub struct ItemHandler {
    store: Arc<dyn ItemStore>,
    clock: Clock,
    replay_record: ReplayRecord,
}

impl ItemHandler {
    /// A handler of this store.
    #[must_use]
    pub fn new(deps: &ConsumerDeps) -> Self {
        let replay_record = ReplayRecord::new(deps.store.clone(), Topic::ItemChanged);
        Self { store: deps.store.clone(), clock: deps.clock.clone(), replay_record }
    }
}

impl MessageHandler for ItemHandler {
    const TOPIC: Topic = Topic::ItemChanged;

    type Command = ItemUpdate;

    fn decode(&self, message: &InboundMessage<'_>) -> Result<ItemUpdate, Poison> {
        Ok(item_update(message)?)
    }

    /// Applies item updates. One that is older than the stored version changes nothing and counts
    /// as applied.
    async fn apply(&self, updates: &[ItemUpdate]) -> Result<(), PartialFailure> {
        let applied = self.store.apply_item_updates(&coalesce(updates), self.clock.now_ms()).await;
        let held =
            |outcomes: Vec<ItemUpdateOutcome>| match outcomes.contains(&ItemUpdateOutcome::Held) {
                true => Err(RetryLater("the settings of items are not restored yet".to_owned())),
                false => Ok(()),
            };
        let applied = applied.map_err(|error| retry_later(&error)).and_then(held);
        applied.map_err(|cause| PartialFailure { applied: 0, cause })
    }

    async fn replay_progress(&self, partition: i32) -> Result<ReplayProgress, RetryLater> {
        self.replay_record.replay_progress(partition).await
    }

    async fn begin_replay(&self, partition: i32) -> Result<(), RetryLater> {
        self.replay_record.begin_replay(partition).await
    }

    async fn complete_replay(&self, partition: i32) -> Result<(), RetryLater> {
        self.replay_record.complete_replay(partition).await
    }
}

/// Keeps only the newest change of each item between two of its removals, because most changes of a
/// batch during a sale are of one item and replace each other.
fn coalesce(updates: &[ItemUpdate]) -> Vec<ItemUpdate> {
    let mut keeps = vec![true; updates.len()];
    let mut last: HashMap<&ItemId, (usize, Option<u64>)> = HashMap::new();
    for (index, one) in updates.iter().enumerate() {
        match &one.kind {
            ItemUpdateKind::Remove { id, .. } => {
                last.remove(id);
            }
            ItemUpdateKind::Upsert(change) => match last.get_mut(&change.id) {
                Some((before, version)) if change.version > *version => {
                    keeps[*before] = false;
                    (*before, *version) = (index, change.version);
                }
                Some(_) => keeps[index] = false,
                None => {
                    last.insert(&change.id, (index, change.version));
                }
            },
        }
    }
    let kept = updates.iter().zip(keeps).filter(|(_, keeps)| *keeps);
    kept.map(|(update, _)| update.clone()).collect()
}

fn item_update(message: &InboundMessage<'_>) -> Result<ItemUpdate, InvalidMessage> {
    let kind = match message.body {
        Some(body) => changed(decode(body)?),
        None => removal(message)?,
    };
    let offset = u64::try_from(message.offset).unwrap_or(0);
    Ok(ItemUpdate { kind, position: LogPosition { offset, at: message.at } })
}

fn changed(event: ItemChanged) -> ItemUpdateKind {
    if event.is_waiting_queue_target_item {
        ItemUpdateKind::Upsert(event.change())
    } else {
        ItemUpdateKind::Remove { id: event.item_id, version: Some(event.version) }
    }
}

/// Decodes a tombstone, which removes the item of its key. With a `version` header it applies only
/// if it is newer than the stored version, like any other change. Without one it applies unless the
/// store has applied this or a later record of the item.
fn removal(message: &InboundMessage<'_>) -> Result<ItemUpdateKind, InvalidMessage> {
    let key = message.key.and_then(|key| std::str::from_utf8(key).ok());
    let id = ItemId::parse(key.ok_or(InvalidMessage::NoKey)?)?;
    let version = match message.header(VERSION_HEADER) {
        Some(text) => Some(text.parse().map_err(|_| InvalidMessage::Version)?),
        None => None,
    };
    Ok(ItemUpdateKind::Remove { id, version })
}

#[cfg(test)]
mod tests {
    use daegi_domain::ItemName;

    use super::*;

    fn changed(id: &str, version: u64) -> ItemUpdateKind {
        ItemUpdateKind::Upsert(daegi_domain::ItemChange {
            id: ItemId::parse(id).unwrap(),
            name: ItemName::parse("Friday 8 pm").unwrap(),
            stock: 1,
            enabled: true,
            version: Some(version),
            policy: None,
        })
    }

    #[test]
    fn only_the_newest_change_before_a_removal_is_kept() {
        let gone = || ItemUpdateKind::Remove { id: ItemId::parse("a").unwrap(), version: None };
        let kinds = [
            changed("a", 1), // older than the next
            changed("a", 3),
            changed("b", 7),
            changed("a", 2), // older than the last
            gone(),
            changed("a", 3), // the store decides whether it applies
            changed("b", 7), // a repeat
        ];
        let at = |offset| LogPosition { offset, at: 0 };
        let updates =
            kinds.into_iter().zip(0..).map(|(kind, n)| ItemUpdate { kind, position: at(n) });
        let updates: Vec<_> = updates.collect();
        let offsets: Vec<_> =
            coalesce(&updates).iter().map(|update| update.position.offset).collect();
        assert_eq!(offsets, [1, 2, 4, 5]);
    }
}
