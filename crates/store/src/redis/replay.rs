use async_trait::async_trait;
use futures_util::future::try_join_all;

use super::scripts::scripts;
use super::{RedisStore, reply};
use crate::types::ReplayState;
use crate::{ReplayStore, Result};

#[async_trait]
impl ReplayStore for RedisStore {
    /// Returns the least state of all partitions.
    async fn replay_state(&self, log: &str) -> Result<ReplayState> {
        let states = self.all_partitions().map(|partition| {
            let mut script = scripts().replay_state.invocation();
            script.key(partition.replays).arg(log);
            self.run::<Option<String>>(script)
        });
        let states = try_join_all(states).await?.into_iter();
        let states = states.map(|state| reply::replay_state(state.as_deref()));
        Ok(states.collect::<Result<Vec<_>>>()?.into_iter().min().unwrap_or(ReplayState::NotStarted))
    }

    async fn begin_replay(&self, log: &str) -> Result<()> {
        let recorded = self.all_partitions().map(|partition| {
            let mut script = scripts().begin_replay.invocation();
            script.key(partition.replays).arg(log);
            self.run::<()>(script)
        });
        try_join_all(recorded).await.map(drop)
    }

    async fn complete_replay(&self, log: &str) -> Result<bool> {
        let recorded = self.all_partitions().map(|partition| {
            let mut script = scripts().complete_replay.invocation();
            script.key(partition.replays).arg(log);
            self.run::<bool>(script)
        });
        Ok(try_join_all(recorded).await?.into_iter().all(|recorded| recorded))
    }
}
