//! A master and its replica, watched by three sentinels.

use std::collections::HashMap;

use anyhow::Context;
use daegi_store::RedisConfig;

use super::access::Access;
use super::kind::Kind;
use super::{CLUSTER_READY_TIMEOUT, Redis, restart_stopped, started_or_skip};
use crate::eventually::eventually;

/// The service name of the sentinels.
const SERVICE: &str = "daegi";

/// Two servers and three sentinels, stopped with the value.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: Vec<Redis>,
    sentinels: Vec<Redis>,
}

/// Starts a master with a replica and sentinels, or returns `None` as [`super::redis_or_skip`].
///
/// # Panics
/// As [`super::redis_or_skip`].
pub async fn redis_sentinel_or_skip() -> Option<RedisSentinel> {
    started_or_skip(RedisSentinel::start().await)
}

impl RedisSentinel {
    /// Starts all and waits until a fail-over would work.
    ///
    /// # Errors
    /// If `redis-server` is missing or something does not start.
    pub async fn start() -> anyhow::Result<Self> {
        let access = Access::chosen()?;
        let master = Redis::launched(Kind::durable(), &access).await?;
        let follow = ["--replicaof", &format!("127.0.0.1 {}", master.port())];
        let options = ["--appendonly", "yes", "--appendfsync", "no"];
        let replica = Kind::with(&[options.as_slice(), &follow].concat());
        let replica = Redis::launched(replica, &access).await?;
        eventually(CLUSTER_READY_TIMEOUT, "the replica follows", || async {
            let info: String = replica.command(&["INFO", "replication"]).await.unwrap_or_default();
            info.contains("master_link_status:up")
        })
        .await;
        let text = settings(master.port()) + &access.sentinel_settings(SERVICE);
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            sentinels.push(Redis::launched(Kind::Sentinel(text.clone()), &access).await?);
        }
        let started = Self { servers: vec![master, replica], sentinels };
        started.wait_until_ready().await;
        Ok(started)
    }

    /// Returns the address for daegi.
    #[must_use]
    pub fn url(&self) -> String {
        self.config().url
    }

    /// Returns the address for daegi with its files.
    #[must_use]
    pub fn config(&self) -> RedisConfig {
        let hosts: Vec<_> =
            self.sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port())).collect();
        self.servers[0].access.config("+sentinel", &format!("{}/{SERVICE}", hosts.join(",")))
    }

    /// Returns the current master.
    ///
    /// # Errors
    /// If no sentinel replies.
    pub async fn master(&mut self) -> anyhow::Result<&mut Redis> {
        let port = self.master_port().await.context("no sentinel replies")?;
        self.servers
            .iter_mut()
            .find(|server| server.port() == port)
            .context("an unknown server is master")
    }

    /// Restarts stopped servers, and waits until a fail-over would work again.
    ///
    /// # Errors
    /// If one does not start.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        restart_stopped(&mut self.servers).await?;
        self.wait_until_ready().await;
        Ok(())
    }

    /// Returns the first sentinel.
    #[must_use]
    pub fn sentinel(&self) -> &Redis {
        &self.sentinels[0]
    }

    /// Continues paused servers.
    pub fn resume_all(&self) {
        for server in &self.servers {
            // Fails only for one that does not run.
            let _ = server.resume();
        }
    }

    /// Deletes all data.
    ///
    /// # Errors
    /// If the master does not reply.
    pub async fn flush(&self) -> anyhow::Result<()> {
        let port = self.master_port().await.context("no sentinel replies")?;
        let master = self.servers.iter().find(|server| server.port() == port);
        Ok(master.context("an unknown server is master")?.command(&["FLUSHALL"]).await?)
    }

    /// Waits until a fail-over would work: every sentinel knows the others and the replica.
    async fn wait_until_ready(&self) {
        for sentinel in &self.sentinels {
            eventually(CLUSTER_READY_TIMEOUT, "the sentinels know each other", || async {
                let view = view(sentinel).await.unwrap_or_default();
                let counts =
                    ["num-slaves", "num-other-sentinels"].map(|name| view.get(name).cloned());
                counts == [Some("1".into()), Some("2".into())]
            })
            .await;
        }
    }

    async fn master_port(&self) -> Option<u16> {
        for sentinel in &self.sentinels {
            if let Ok(view) = view(sentinel).await {
                return view.get("port")?.parse().ok();
            }
        }
        None
    }
}

async fn view(sentinel: &Redis) -> redis::RedisResult<HashMap<String, String>> {
    sentinel.command(&["SENTINEL", "MASTER", SERVICE]).await
}

/// Shorter timeouts than in production, so that tests need not wait. Between two fail-overs
/// sentinels wait for twice the fail-over timeout.
fn settings(master: u16) -> String {
    format!(
        "sentinel monitor {SERVICE} 127.0.0.1 {master} 2\n\
         sentinel down-after-milliseconds {SERVICE} 1000\n\
         sentinel failover-timeout {SERVICE} 2000\n"
    )
}
