use std::collections::BTreeMap;

use async_trait::async_trait;
use daegi_domain::{Millis, Settings};
use futures_util::future::try_join_all;

use super::scripts::scripts;
use super::{RedisStore, keys, memory_usage, reply};
use crate::limits::{HEARTBEAT_RETENTION_MS, MAX_AUDIT_ENTRIES, MAX_OPERATORS};
use crate::types::{HeartbeatRecord, MemoryUsage, PutOperator};
use crate::{AdminStore, Error, Result};

/// How long the published count of waiting tickets is kept: 120 s, twice the longest tick (60 s).
const WAITING_RETENTION_MS: Millis = 120_000;

#[async_trait]
impl AdminStore for RedisStore {
    async fn settings(&self) -> Result<Settings> {
        Ok(self.revised_settings().await?.0)
    }

    async fn set_settings(
        &self,
        token_count_to_move: Option<u32>,
        tick_ms: Option<u32>,
    ) -> Result<Settings> {
        let given = [("tokenCountToMove", token_count_to_move), ("tickMs", tick_ms)];
        let given: Vec<(&str, u32)> =
            given.into_iter().filter_map(|(field, value)| Some((field, value?))).collect();
        if !given.is_empty() {
            let mut set = scripts().set_settings.invocation();
            set.key(keys::settings()).arg(&given);
            self.run::<()>(set).await?;
        }
        self.copy_settings_to_partitions().await
    }

    async fn copy_settings(&self) -> Result<()> {
        self.copy_settings_to_partitions().await.map(drop)
    }

    async fn declare_loss(&self, now: Millis) -> Result<()> {
        self.record_loss(now).await
    }

    async fn append_audit(&self, entry: &str) -> Result<()> {
        let mut script = scripts().append_audit.invocation();
        script.key(keys::audit_log()).arg(entry).arg(MAX_AUDIT_ENTRIES);
        self.run(script).await
    }

    async fn read_audit(&self, limit: u32) -> Result<Vec<String>> {
        let last = i64::from(limit.min(MAX_AUDIT_ENTRIES)) - 1;
        if last < 0 {
            return Ok(Vec::new());
        }
        self.command(::redis::cmd("LRANGE").arg(keys::audit_log()).arg(0).arg(last)).await
    }

    async fn put_operator(&self, name: &str, record: &str) -> Result<PutOperator> {
        let mut script = scripts().put_operator.invocation();
        script.key(keys::operators()).arg(name).arg(record).arg(MAX_OPERATORS);
        match self.run::<i64>(script).await? {
            0 => Ok(PutOperator::Stored),
            1 => Ok(PutOperator::NameTaken),
            2 => Ok(PutOperator::LimitReached),
            other => Err(Error::corrupt(format!("put_operator replied {other}"))),
        }
    }

    async fn remove_operator(&self, name: &str) -> Result<bool> {
        self.command(::redis::cmd("HDEL").arg(keys::operators()).arg(name)).await
    }

    async fn operators(&self) -> Result<Vec<String>> {
        let records: BTreeMap<String, String> =
            self.command(::redis::cmd("HGETALL").arg(keys::operators())).await?;
        Ok(records.into_values().collect())
    }

    async fn put_heartbeat(&self, process: &str, payload: &str, now: Millis) -> Result<()> {
        let mut script = scripts().put_heartbeat.invocation();
        script.key(keys::heartbeats()).arg(process).arg(payload).arg(now);
        script.arg(now.saturating_sub(HEARTBEAT_RETENTION_MS));
        self.run(script).await
    }

    async fn heartbeats(&self, now: Millis) -> Result<Vec<HeartbeatRecord>> {
        let stored = self.command(::redis::cmd("HGETALL").arg(keys::heartbeats())).await?;
        reply::heartbeats(stored, now.saturating_sub(HEARTBEAT_RETENTION_MS))
    }

    async fn publish_waiting(&self, tickets: u64) -> Result<()> {
        let mut script = scripts().publish_waiting.invocation();
        script.key(keys::waiting()).arg(tickets).arg(WAITING_RETENTION_MS);
        self.run(script).await
    }

    async fn memory(&self) -> Result<Option<MemoryUsage>> {
        let high = self.capacity.limits.memory_high_percent;
        Ok(memory_usage::fullest(&self.client.node_info("memory").await?, high))
    }

    async fn server_time(&self) -> Result<Option<Millis>> {
        let (seconds, micros): (u64, u64) =
            self.client.lease_command(&::redis::cmd("TIME")).await?;
        Ok(Some(seconds * 1000 + micros / 1000))
    }
}

impl RedisStore {
    /// Writes the settings if the store has none, and checks the number of partitions.
    pub(super) async fn init_settings(&self) -> Result<()> {
        let mut open = scripts().init_settings.invocation();
        open.key(keys::settings()).arg(self.partitions);
        open.arg(self.initial_settings.token_count_to_move).arg(self.initial_settings.tick_ms);
        match self.run(open).await? {
            stored if stored == self.partitions => Ok(()),
            stored => Err(Error::PartitionMismatch { stored, given: self.partitions }),
        }
    }

    /// Returns the settings with their revision. Writes the initial settings if the store lost them.
    async fn revised_settings(&self) -> Result<(Settings, u64)> {
        if let Some(stored) = self.stored_settings().await? {
            return Ok(stored);
        }
        self.init_settings().await?;
        self.stored_settings()
            .await?
            .ok_or_else(|| Error::corrupt("settings disappear after they were written"))
    }

    async fn stored_settings(&self) -> Result<Option<(Settings, u64)>> {
        let mut read = ::redis::cmd("HMGET");
        read.arg(keys::settings()).arg("tokenCountToMove").arg("tickMs").arg("revision");
        let (token_count_to_move, tick_ms, revision): (Option<u32>, Option<u32>, Option<u64>) =
            self.command(&read).await?;
        let stored = token_count_to_move.zip(tick_ms);
        Ok(stored.map(|(token_count_to_move, tick_ms)| {
            (Settings { token_count_to_move, tick_ms }, revision.unwrap_or(0))
        }))
    }

    /// Writes the settings into every partition whose copy is older, and returns them.
    async fn copy_settings_to_partitions(&self) -> Result<Settings> {
        let (settings, revision) = self.revised_settings().await?;
        let copies = self.all_partitions().map(|partition| {
            let mut copy = scripts().copy_settings.invocation();
            copy.key(partition.settings_copy).arg(revision).arg(settings.token_count_to_move);
            self.run::<()>(copy)
        });
        try_join_all(copies).await?;
        Ok(settings)
    }
}
