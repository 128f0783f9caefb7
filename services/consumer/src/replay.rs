//! The replay progress of topic partitions, in the store. It is lost together with the data it
//! describes.

use std::sync::Arc;

use daegi_domain::Topic;
use daegi_kafka::{ReplayProgress, RetryLater};
use daegi_store::{ReplayState, ReplayStore};

use crate::error::retry_later;

/// The replay progress of one topic.
#[derive(Debug)]
pub(crate) struct ReplayRecord {
    store: Arc<dyn ReplayStore>,
    topic: Topic,
}

impl ReplayRecord {
    pub(crate) fn new(store: Arc<dyn ReplayStore>, topic: Topic) -> Self {
        Self { store, topic }
    }

    pub(crate) async fn replay_progress(
        &self,
        partition: i32,
    ) -> Result<ReplayProgress, RetryLater> {
        let known = self.store.replay_state(&self.log(partition)).await;
        Ok(match known.map_err(|error| retry_later(&error))? {
            ReplayState::NotStarted => ReplayProgress::NotStarted,
            ReplayState::InProgress => ReplayProgress::InProgress,
            ReplayState::Complete => ReplayProgress::Complete,
        })
    }

    pub(crate) async fn begin_replay(&self, partition: i32) -> Result<(), RetryLater> {
        let started = self.store.begin_replay(&self.log(partition)).await;
        started.map_err(|error| retry_later(&error))
    }

    pub(crate) async fn complete_replay(&self, partition: i32) -> Result<(), RetryLater> {
        let recorded = self.store.complete_replay(&self.log(partition)).await;
        if recorded.map_err(|error| retry_later(&error))? {
            tracing::debug!(topic = %self.topic, partition, "topic partition replayed to its end");
        }
        Ok(())
    }

    fn log(&self, partition: i32) -> String {
        format!("{}/{partition}", self.topic)
    }
}
