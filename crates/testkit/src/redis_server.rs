//! A real `redis-server`: empty, on a free port, stopped with the value. Alone, as a master with a
//! replica under sentinels ([`RedisSentinel`]), or as a cluster ([`RedisCluster`]).

mod cluster;
mod info;
mod kind;
mod sentinel;

use std::collections::HashMap;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

pub use self::cluster::{RedisCluster, redis_cluster_or_skip};
use self::kind::Kind;
pub use self::sentinel::{RedisSentinel, redis_sentinel_or_skip};
use crate::eventually::eventually;
use crate::port::free_port;
use crate::skip::skip_or_panic;

const BINARY: &str = "redis-server";

/// How long a server may take to start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(20);

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// How long the nodes may take to know each other on a busy machine.
const CLUSTER_READY_TIMEOUT: Duration = Duration::from_secs(30);

/// How often another port is tried if one was taken meanwhile.
const ATTEMPTS: usize = 10;

/// A running Redis, without persistence unless it is durable. Dropping it stops the server.
#[derive(Debug)]
pub struct Redis {
    port: u16,
    kind: Kind,
    dir: TempDir,
    server: Option<Child>,
}

/// Starts a Redis. Returns `None` if `redis-server` is not installed, so that the other tests still
/// run.
///
/// # Panics
/// If Redis does not start, or is not installed and `CI=true`: a build that skips its tests must
/// not be green.
pub async fn redis_or_skip() -> Option<Redis> {
    started_or_skip(Redis::start().await)
}

/// Starts a Redis that keeps its data over a restart, or returns `None` as [`redis_or_skip`].
///
/// # Panics
/// As [`redis_or_skip`].
pub async fn durable_redis_or_skip() -> Option<Redis> {
    started_or_skip(Redis::start_durable().await)
}

/// Returns what was started, or skips the test if `redis-server` is not installed.
fn started_or_skip<T>(started: anyhow::Result<T>) -> Option<T> {
    match started {
        Ok(redis) => Some(redis),
        Err(error) if is_missing(&error) => {
            skip_or_panic(format_args!("{BINARY} is not installed"))
        }
        Err(error) => panic!("{error:#}"),
    }
}

impl Redis {
    /// Starts a server and waits until it replies.
    ///
    /// # Errors
    /// If `redis-server` is missing or does not start.
    pub async fn start() -> anyhow::Result<Self> {
        Self::launched(Kind::ephemeral()).await
    }

    /// Starts a server that keeps its data over a restart.
    ///
    /// # Errors
    /// As [`Redis::start`].
    pub async fn start_durable() -> anyhow::Result<Self> {
        Self::launched(Kind::durable()).await
    }

    async fn launched(kind: Kind) -> anyhow::Result<Self> {
        for _ in 0..ATTEMPTS {
            let dir = tempfile::tempdir()?;
            let mut redis = Self { port: free_port(), kind: kind.clone(), dir, server: None };
            if redis.launch().await? {
                return Ok(redis);
            }
        }
        bail!("{BINARY} found no port in {ATTEMPTS} attempts")
    }

    /// Returns the address for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the port on the loopback interface, which stays the same over restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills the server, as an outage does. Its data is lost, unless it is durable.
    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Both fail only for a server that has ended already.
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Returns whether the server was started and not stopped.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.server.is_some()
    }

    /// Stops the server with SIGSTOP, so that it accepts and does not reply, until
    /// [`Redis::resume`].
    ///
    /// # Errors
    /// If it does not run.
    pub fn pause(&self) -> anyhow::Result<()> {
        self.signal("-STOP")
    }

    /// Continues a paused server.
    ///
    /// # Errors
    /// If it does not run.
    pub fn resume(&self) -> anyhow::Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let server = self.server.as_ref().context("the server does not run")?;
        let sent = Command::new("kill").args([signal, &server.id().to_string()]).status()?;
        anyhow::ensure!(sent.success(), "kill {signal} failed");
        Ok(())
    }

    /// Starts a server on the same port: empty, unless it is durable.
    ///
    /// # Errors
    /// If it does not start, or the port was taken meanwhile.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.stop();
        if !self.launch().await? {
            bail!("port {} was taken during the outage", self.port);
        }
        Ok(())
    }

    /// Starts a server on the same port that has lost everything, durable or not.
    ///
    /// # Errors
    /// As [`Redis::start_again`].
    pub async fn start_empty(&mut self) -> anyhow::Result<()> {
        self.stop();
        self.dir = tempfile::tempdir()?;
        self.start_again().await
    }

    /// Returns the process id, if it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// If the server does not reply.
    pub async fn connection(&self) -> redis::RedisResult<MultiplexedConnection> {
        let client = redis::Client::open(self.url())?;
        client.get_multiplexed_async_connection().await
    }

    /// Returns how often each command was called, by its name in lower case. The call itself adds
    /// an `info`.
    ///
    /// # Errors
    /// If the server does not reply.
    pub async fn commandstats(&self) -> anyhow::Result<HashMap<String, u64>> {
        let text = self.info("commandstats").await?;
        Ok(info::calls(&text))
    }

    /// Sends one command and returns its reply.
    ///
    /// # Errors
    /// If the server does not reply, or replies with an error.
    pub async fn command<T: redis::FromRedisValue>(
        &self,
        arguments: &[&str],
    ) -> redis::RedisResult<T> {
        let mut connection = self.connection().await?;
        let mut command = redis::Cmd::new();
        command.arg(arguments).query_async(&mut connection).await
    }

    async fn info(&self, section: &str) -> redis::RedisResult<String> {
        let mut connection = self.connection().await?;
        let mut command = redis::cmd("INFO");
        command.arg(section).query_async(&mut connection).await
    }

    /// Starts the server on its port. Returns `false` if it ended immediately, because the port was
    /// taken.
    async fn launch(&mut self) -> anyhow::Result<bool> {
        let server = self.spawn().with_context(|| format!("cannot run {BINARY}"))?;
        let pid = server.id().to_string();
        let server = self.server.insert(server);
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if server.try_wait()?.is_some() {
                self.server = None;
                return Ok(false);
            }
            if ready_process(self.port).await.as_ref() == Some(&pid) {
                return Ok(true);
            }
            sleep(POLL_INTERVAL).await;
        }
        bail!("{BINARY} did not reply within {START_TIMEOUT:?}")
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = Command::new(BINARY);
        self.kind.configure(&mut command, self.port, self.dir.path())?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Restarts stopped servers, and waits until every master has its replica again.
async fn restart_stopped(servers: &mut [Redis]) -> anyhow::Result<()> {
    for server in servers.iter_mut().filter(|server| !server.is_running()) {
        server.start_again().await?;
    }
    for server in &*servers {
        eventually(CLUSTER_READY_TIMEOUT, "every master has a replica", || async {
            let info: String = server.command(&["INFO", "replication"]).await.unwrap_or_default();
            info.contains("master_link_status:up") || info.contains("connected_slaves:1")
        })
        .await;
    }
    Ok(())
}

/// Returns the id of the process that replies on a port and has loaded its data. A server of
/// another test may hold the port while ours is about to exit, so a reply alone proves nothing.
async fn ready_process(port: u16) -> Option<String> {
    let client = redis::Client::open(("127.0.0.1", port)).ok()?;
    let mut connection = client.get_multiplexed_async_connection().await.ok()?;
    let command = redis::cmd("INFO");
    let text: String = command.query_async(&mut connection).await.ok()?;
    let process = info::field(&text, "process_id")?;
    // A sentinel loads nothing and has no such field.
    (info::field(&text, "loading") != Some("1")).then(|| process.to_owned())
}

fn is_missing(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
}
