//! The settings of items, from daegi's own `control.changed`.
//!
//! The consumer replays the topic whenever the store has no record of a replay, and the store takes records
//! that are newer than its own settings. A store that did not lose data has none that are older, so that
//! records have no effect. Until the replay is complete, the store holds updates of `item.changed`: an
//! item must have its settings before its line admits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use daegi_domain::{ControlChanged, ItemControl, ItemId, TicketKeys, Topic};
use daegi_kafka::{
    ConsumerConfig, InboundMessage, MessageHandler, PartialFailure, Poison, ReplayProgress,
    RetryLater, TopicMetadata, schema,
};
use daegi_runtime::Clock;
use daegi_runtime::outage::OutageLog;
use daegi_store::{CONTROL_LOG, ControlStore, ReplayState, SharedStore};
use futures_util::future::try_join_all;

use crate::error::retry_later;
use crate::replay::ReplayRecord;
use crate::{COMPONENT, ConsumerDeps};

/// Items that are restored concurrently.
const MAX_CONCURRENT: usize = 64;

/// How often the replay of all partitions is checked: while it is incomplete, and afterwards.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// After so many checks without a topic there is none: a broker that restarts may not know its topics for
/// some seconds.
const MISSING_AFTER: u32 = 40;

/// Restores the settings of items in a store that lost data.
pub struct ControlHandler {
    store: Arc<dyn ControlStore>,
    ticket_keys: TicketKeys,
    clock: Clock,
    replay_record: ReplayRecord,
}

impl ControlHandler {
    /// A handler of this store.
    #[must_use]
    pub fn new(deps: &ConsumerDeps) -> Self {
        Self {
            store: deps.store.clone(),
            ticket_keys: deps.ticket_keys.clone(),
            clock: deps.clock.clone(),
            replay_record: ReplayRecord::new(deps.store.clone(), Topic::ControlChanged),
        }
    }

    /// Returns `None` for a tombstone, with which an operator deletes a record, and for a record that cannot
    /// be read: a later release may have written it. Such records are not dead-lettered, because the topic is
    /// daegi's own.
    fn control(&self, message: &InboundMessage<'_>) -> Option<ItemControl> {
        let record = match schema::decode::<ControlChanged>(message.body?) {
            Ok(record) => record,
            Err(error) => {
                let (partition, offset) = (message.partition, message.offset);
                tracing::warn!(
                    component = COMPONENT,
                    topic = %Topic::ControlChanged,
                    partition,
                    offset,
                    %error,
                    "record of settings ignored, it cannot be read"
                );
                return None;
            }
        };
        let read = record.into_control(&self.ticket_keys);
        if read.is_draw_lost {
            tracing::error!(
                component = COMPONENT,
                item.id = %read.control.id,
                "the ticket secret that sealed the reveal of the draw is missing: if the settings were lost, \
                 the line comes back paused and without its draw"
            );
        }
        Some(read.control)
    }

    async fn restore(&self, control: &ItemControl) -> Result<(), RetryLater> {
        let restored = self.store.restore_control(control, self.clock.now_ms()).await;
        if restored.map_err(|error| retry_later(&error))? {
            tracing::info!(
                component = COMPONENT,
                item.id = %control.id,
                version = control.control_version,
                "settings restored"
            );
        }
        Ok(())
    }
}

impl MessageHandler for ControlHandler {
    const TOPIC: Topic = Topic::ControlChanged;

    type Command = Option<ItemControl>;

    fn decode(&self, message: &InboundMessage<'_>) -> Result<Option<ItemControl>, Poison> {
        Ok(self.control(message))
    }

    async fn apply(&self, records: &[Option<ItemControl>]) -> Result<(), PartialFailure> {
        for records in newest(records).chunks(MAX_CONCURRENT) {
            let restored = try_join_all(records.iter().map(|control| self.restore(control)));
            restored.await.map_err(|cause| PartialFailure { applied: 0, cause })?;
        }
        Ok(())
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

/// Returns the record of each item with the highest version.
fn newest(records: &[Option<ItemControl>]) -> Vec<&ItemControl> {
    let mut newest: HashMap<&ItemId, &ItemControl> = HashMap::new();
    for control in records.iter().flatten() {
        let known = newest.entry(&control.id).or_insert(control);
        if known.control_version < control.control_version {
            *known = control;
        }
    }
    newest.into_values().collect()
}

/// Records that all partitions of the topic were replayed, so that updates of items are applied. Never
/// returns. Every replica does it: the partitions of the topic may be assigned to different ones.
pub(crate) async fn watch_replay(
    store: SharedStore,
    config: ConsumerConfig,
    metadata: TopicMetadata,
) {
    let topic = config.topics.name(Topic::ControlChanged);
    let mut outage = OutageLog::new("settings replay");
    let mut checks_without_topic = 0;
    loop {
        let interval = match is_complete(&*store, &metadata, topic, &mut checks_without_topic).await
        {
            Ok(is_complete) => {
                outage.recovered();
                if is_complete { IDLE_INTERVAL } else { CHECK_INTERVAL }
            }
            Err(RetryLater(error)) => {
                outage.failed(&error);
                IDLE_INTERVAL
            }
        };
        tokio::time::sleep(interval).await;
    }
}

/// Returns whether the settings are restored, and records it when all partitions were replayed.
async fn is_complete(
    store: &dyn daegi_store::Store,
    metadata: &TopicMetadata,
    topic: &str,
    checks_without_topic: &mut u32,
) -> Result<bool, RetryLater> {
    let state =
        async |log: &str| store.replay_state(log).await.map_err(|error| retry_later(&error));
    if state(CONTROL_LOG).await? == ReplayState::Complete {
        return Ok(true);
    }
    // First, so that a loss during this check removes the record.
    store.begin_replay(CONTROL_LOG).await.map_err(|error| retry_later(&error))?;
    let partitions = metadata.partitions(topic).await;
    match partitions.map_err(|error| RetryLater(error.to_string()))? {
        Some(partitions) => {
            *checks_without_topic = 0;
            for partition in 0..partitions {
                let log = format!("{}/{partition}", Topic::ControlChanged);
                if state(&log).await? != ReplayState::Complete {
                    return Ok(false);
                }
            }
        }
        None if *checks_without_topic < MISSING_AFTER => {
            *checks_without_topic += 1;
            return Ok(false);
        }
        None => tracing::error!(
            component = COMPONENT,
            topic,
            "topic of settings missing or not readable: settings do not survive a data loss of the store; \
             create it, compacted, or permit the consumer to read it"
        ),
    }
    store.complete_replay(CONTROL_LOG).await.map_err(|error| retry_later(&error))
}

impl std::fmt::Debug for ControlHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlHandler").field("store", &self.store).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use daegi_domain::{Settings, Topics};
    use daegi_kafka::EmbeddedBroker;
    use daegi_store::{MemoryStore, ReplayStore};

    use super::*;

    fn store() -> MemoryStore {
        MemoryStore::new(1, Settings { token_count_to_move: 1, tick_ms: 1000 })
    }

    #[tokio::test]
    async fn the_settings_are_restored_when_every_partition_was_replayed() {
        let (store, broker) = (store(), EmbeddedBroker::start(&Topics::default()).unwrap());
        let metadata = TopicMetadata::new(broker.bootstrap_servers()).unwrap();
        for partition in 0..3 {
            let log = format!("control.changed/{partition}");
            let mut missing = 0;
            let complete = is_complete(&store, &metadata, "control.changed", &mut missing).await;
            assert_eq!(complete, Ok(false), "{partition}");
            store.begin_replay(&log).await.unwrap();
            assert!(store.complete_replay(&log).await.unwrap());
        }
        let complete = is_complete(&store, &metadata, "control.changed", &mut 0).await;
        assert_eq!(complete, Ok(true));
        store.restore(None);
        let complete = is_complete(&store, &metadata, "control.changed", &mut 0).await;
        assert_eq!(complete, Ok(false), "lost again");
    }

    #[tokio::test]
    async fn a_missing_topic_does_not_hold_items_for_ever() {
        let (store, broker) = (store(), EmbeddedBroker::start(&Topics::default()).unwrap());
        broker.deny("control.changed").unwrap();
        let metadata = TopicMetadata::new(broker.bootstrap_servers()).unwrap();
        let mut missing = 0;
        for check in 0..MISSING_AFTER {
            let complete = is_complete(&store, &metadata, "control.changed", &mut missing).await;
            assert_eq!(complete, Ok(false), "{check}");
        }
        let complete = is_complete(&store, &metadata, "control.changed", &mut missing).await;
        assert_eq!(complete, Ok(true));
    }
}
