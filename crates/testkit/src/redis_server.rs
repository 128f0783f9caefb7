//! A real `redis-server` of a test's own: empty, on a free port, gone with the value. Alone, as a
//! master with a replica under sentinels ([`RedisSentinel`]), or as a cluster ([`RedisCluster`]).

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

pub use self::cluster::{RedisCluster, redis_cluster_or_loud};
use self::kind::Kind;
pub use self::sentinel::{RedisSentinel, redis_sentinel_or_loud};
use crate::ci::in_ci;
use crate::patience::eventually;
use crate::port::free_port;

const BINARY: &str = "redis-server";

/// How long a server may take to answer, on a machine that is busy with many tests.
const START_DEADLINE: Duration = Duration::from_secs(20);

const PAUSE: Duration = Duration::from_millis(5);

/// How long everybody may take to know everybody, on a busy machine.
const ACQUAINTED: Duration = Duration::from_secs(30);

/// How often another port is tried when somebody was faster.
const ATTEMPTS: usize = 10;

/// A running Redis, without persistence unless it is durable. Dropping it ends the server.
#[derive(Debug)]
pub struct Redis {
    port: u16,
    kind: Kind,
    dir: TempDir,
    server: Option<Child>,
}

/// A Redis, or `None` after one loud line where `redis-server` is not installed: a laptop without
/// it still runs the other tests.
///
/// # Panics
/// If Redis is installed and does not start, or is missing where `CI=true`: a build that skips
/// its tests must not be green.
pub async fn redis_or_loud() -> Option<Redis> {
    loud(Redis::start().await)
}

/// A Redis that has lost nothing when it is started again, or `None` as [`redis_or_loud`].
///
/// # Panics
/// As [`redis_or_loud`].
pub async fn durable_redis_or_loud() -> Option<Redis> {
    loud(Redis::start_durable().await)
}

#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn loud<T>(started: anyhow::Result<T>) -> Option<T> {
    match started {
        Ok(redis) => Some(redis),
        Err(error) if is_missing(&error) && !in_ci() => {
            eprintln!("!!! SKIPPED: {BINARY} is not installed, this test has checked NOTHING !!!");
            None
        }
        Err(error) => panic!("{error:#}"),
    }
}

impl Redis {
    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    /// If `redis-server` is missing or does not start.
    pub async fn start() -> anyhow::Result<Self> {
        Self::launched(Kind::passing()).await
    }

    /// Starts a server that has lost nothing when it is started again.
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

    /// The address for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port on the loopback interface; it stays the same through an outage.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills the server without a goodbye, as an outage does. Its data is lost, unless it is durable.
    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Both fail only for a server that is gone already.
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    /// Whether the server was started and not stopped.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.server.is_some()
    }

    /// Makes the server accept and not answer, until [`Redis::resume`].
    ///
    /// # Errors
    /// If it does not run.
    pub fn pause(&self) -> anyhow::Result<()> {
        self.signal("-STOP")
    }

    /// Lets a paused server go on.
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
    /// If it does not start, or somebody took the port in the meantime.
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

    /// The id of its process, if it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// A new connection.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn connection(&self) -> redis::RedisResult<MultiplexedConnection> {
        let client = redis::Client::open(self.url())?;
        client.get_multiplexed_async_connection().await
    }

    /// How often each command has been called, by its name in lower case. Asking adds an `info`.
    ///
    /// # Errors
    /// If the server does not answer.
    pub async fn commandstats(&self) -> anyhow::Result<HashMap<String, u64>> {
        let text = self.info("commandstats").await?;
        Ok(info::calls(&text))
    }

    /// Sends one command and returns its answer.
    ///
    /// # Errors
    /// If the server does not answer, or with an error.
    pub async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let mut connection = self.connection().await?;
        let mut command = redis::Cmd::new();
        command.arg(words).query_async(&mut connection).await
    }

    async fn info(&self, section: &str) -> redis::RedisResult<String> {
        let mut connection = self.connection().await?;
        let mut command = redis::cmd("INFO");
        command.arg(section).query_async(&mut connection).await
    }

    /// Starts the server on our port; `false` if it ended at once, because the port was taken.
    async fn launch(&mut self) -> anyhow::Result<bool> {
        let server = self.spawn().with_context(|| format!("cannot run {BINARY}"))?;
        let pid = server.id().to_string();
        let server = self.server.insert(server);
        let deadline = Instant::now() + START_DEADLINE;
        while Instant::now() < deadline {
            if server.try_wait()?.is_some() {
                self.server = None;
                return Ok(false);
            }
            if ready_process(self.port).await.as_ref() == Some(&pid) {
                return Ok(true);
            }
            sleep(PAUSE).await;
        }
        bail!("{BINARY} did not answer within {START_DEADLINE:?}")
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

/// Starts those that were stopped, and waits until every master has its replica again.
async fn in_pairs_again(servers: &mut [Redis]) -> anyhow::Result<()> {
    for server in servers.iter_mut().filter(|server| !server.runs()) {
        server.start_again().await?;
    }
    for server in &*servers {
        eventually(ACQUAINTED, "every master has a replica", || async {
            let info: String = server.ask(&["INFO", "replication"]).await.unwrap_or_default();
            info.contains("master_link_status:up") || info.contains("connected_slaves:1")
        })
        .await;
    }
    Ok(())
}

/// The id of the process that answers on a port and has read its data. A server of another test
/// may sit on it while ours is about to give up, so an answer alone proves nothing.
async fn ready_process(port: u16) -> Option<String> {
    let client = redis::Client::open(("127.0.0.1", port)).ok()?;
    let mut connection = client.get_multiplexed_async_connection().await.ok()?;
    let command = redis::cmd("INFO");
    let text: String = command.query_async(&mut connection).await.ok()?;
    let process = info::field(&text, "process_id")?;
    // A sentinel has nothing to load and says nothing about it.
    (info::field(&text, "loading") != Some("1")).then(|| process.to_owned())
}

fn is_missing(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
}
