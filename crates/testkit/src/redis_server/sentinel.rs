//! A master and its replica, watched by three sentinels.

use std::collections::HashMap;

use anyhow::Context;

use super::kind::Kind;
use super::{ACQUAINTED, Redis, in_pairs_again, loud};
use crate::patience::eventually;

/// What the sentinels call their master.
const SERVICE: &str = "daegi";

/// Two servers and three sentinels, all of them gone with the value.
#[derive(Debug)]
pub struct RedisSentinel {
    servers: Vec<Redis>,
    sentinels: Vec<Redis>,
}

/// A master with a replica and sentinels, or `None` as [`super::redis_or_loud`].
///
/// # Panics
/// As [`super::redis_or_loud`].
pub async fn redis_sentinel_or_loud() -> Option<RedisSentinel> {
    loud(RedisSentinel::start().await)
}

impl RedisSentinel {
    /// Starts all and waits until a fail-over would work.
    ///
    /// # Errors
    /// If `redis-server` is missing or something does not start.
    pub async fn start() -> anyhow::Result<Self> {
        let master = Redis::launched(Kind::durable()).await?;
        let follow = ["--replicaof", &format!("127.0.0.1 {}", master.port())];
        let options = ["--appendonly", "yes", "--appendfsync", "no"];
        let replica = Redis::launched(Kind::with(&[options.as_slice(), &follow].concat())).await?;
        eventually(ACQUAINTED, "the replica follows", || async {
            let info: String = replica.ask(&["INFO", "replication"]).await.unwrap_or_default();
            info.contains("master_link_status:up")
        })
        .await;
        let text = settings(master.port());
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            sentinels.push(Redis::launched(Kind::Sentinel(text.clone())).await?);
        }
        let started = Self { servers: vec![master, replica], sentinels };
        started.settled().await;
        Ok(started)
    }

    /// The address for daegi.
    #[must_use]
    pub fn url(&self) -> String {
        let hosts: Vec<_> =
            self.sentinels.iter().map(|s| format!("127.0.0.1:{}", s.port())).collect();
        format!("redis+sentinel://{}/{SERVICE}", hosts.join(","))
    }

    /// The server the sentinels call the master now.
    ///
    /// # Errors
    /// If no sentinel answers.
    pub async fn master(&mut self) -> anyhow::Result<&mut Redis> {
        let named = self.named().await.context("no sentinel answers")?;
        self.servers
            .iter_mut()
            .find(|server| server.port() == named)
            .context("a stranger is master")
    }

    /// Starts servers that were stopped, and waits until a fail-over would work again.
    ///
    /// # Errors
    /// If one does not start.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        in_pairs_again(&mut self.servers).await?;
        self.settled().await;
        Ok(())
    }

    /// One of those that watch.
    #[must_use]
    pub fn sentinel(&self) -> &Redis {
        &self.sentinels[0]
    }

    /// Lets paused servers go on.
    pub fn resume_all(&self) {
        for server in &self.servers {
            // Fails only for one that does not run.
            let _ = server.resume();
        }
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// If the master does not answer.
    pub async fn flush(&self) -> anyhow::Result<()> {
        let named = self.named().await.context("no sentinel answers")?;
        let master = self.servers.iter().find(|server| server.port() == named);
        Ok(master.context("a stranger is master")?.ask(&["FLUSHALL"]).await?)
    }

    /// Waits until a fail-over would work: every sentinel knows the others and the replica.
    async fn settled(&self) {
        for sentinel in &self.sentinels {
            eventually(ACQUAINTED, "the sentinels know each other", || async {
                let view = view(sentinel).await.unwrap_or_default();
                let counts =
                    ["num-slaves", "num-other-sentinels"].map(|name| view.get(name).cloned());
                counts == [Some("1".into()), Some("2".into())]
            })
            .await;
        }
    }

    async fn named(&self) -> Option<u16> {
        for sentinel in &self.sentinels {
            if let Ok(view) = view(sentinel).await {
                return view.get("port")?.parse().ok();
            }
        }
        None
    }
}

async fn view(sentinel: &Redis) -> redis::RedisResult<HashMap<String, String>> {
    sentinel.ask(&["SENTINEL", "MASTER", SERVICE]).await
}

/// Quick to notice, so that tests need not wait for what production gives more time. Between two
/// fail-overs sentinels rest for twice the time that one may take.
fn settings(master: u16) -> String {
    format!(
        "sentinel monitor {SERVICE} 127.0.0.1 {master} 2\n\
         sentinel down-after-milliseconds {SERVICE} 1000\n\
         sentinel failover-timeout {SERVICE} 2000\n"
    )
}
