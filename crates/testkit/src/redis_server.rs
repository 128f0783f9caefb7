//! A real `redis-server`: empty, on a free port, stopped with the value. Alone, as a master with a
//! replica under sentinels ([`RedisSentinel`]), or as a cluster ([`RedisCluster`]).
//!
//! `DAEGI_TEST_REDIS=tls` starts all of them with TLS and the documented ACL, and
//! `DAEGI_TEST_REDIS_SERVER=PATH` another program, such as `valkey-server`.

mod access;
mod cluster;
mod info;
mod kind;
mod sentinel;

use std::collections::HashMap;
use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use daegi_store::RedisConfig;
use redis::aio::MultiplexedConnection;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use self::access::Access;
pub use self::access::{REDIS_PASSWORD, RedisAccess};
pub use self::cluster::{RedisCluster, redis_cluster_or_skip};
use self::kind::Kind;
pub use self::sentinel::{RedisSentinel, redis_sentinel_or_skip};
use crate::eventually::eventually;
use crate::port::free_port;
use crate::skip::skip_or_panic;

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
    access: Access,
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

/// Starts a Redis without TLS and login, whatever `DAEGI_TEST_REDIS` is, for tests with a proxy that reads
/// commands. Returns `None` as [`redis_or_skip`].
///
/// # Panics
/// As [`redis_or_skip`].
pub async fn plain_redis_or_skip() -> Option<Redis> {
    started_or_skip(Redis::launched(Kind::ephemeral(), &Access::Open).await)
}

/// Starts a Redis with TLS and users that keeps its data over a restart, or returns `None` as
/// [`redis_or_skip`].
///
/// # Panics
/// As [`redis_or_skip`].
pub async fn secured_redis_or_skip() -> Option<Redis> {
    let started = async { Redis::launched(Kind::durable(), &Access::secured()?).await };
    started_or_skip(started.await)
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
            skip_or_panic(format_args!("{} is not installed", binary()))
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
        Self::launched(Kind::ephemeral(), &Access::chosen()?).await
    }

    /// Starts a server that keeps its data over a restart.
    ///
    /// # Errors
    /// As [`Redis::start`].
    pub async fn start_durable() -> anyhow::Result<Self> {
        Self::launched(Kind::durable(), &Access::chosen()?).await
    }

    async fn launched(kind: Kind, access: &Access) -> anyhow::Result<Self> {
        for _ in 0..ATTEMPTS {
            let (dir, kind, access) = (tempfile::tempdir()?, kind.clone(), access.clone());
            let mut redis = Self { port: free_port(), kind, access, dir, server: None };
            if redis.launch().await? {
                return Ok(redis);
            }
        }
        bail!("{} found no port in {ATTEMPTS} attempts", binary())
    }

    /// Returns the address for clients of a server without TLS and login; [`Redis::config`] works with both.
    #[must_use]
    pub fn url(&self) -> String {
        self.config().url
    }

    /// Returns the address for daegi with its files.
    #[must_use]
    pub fn config(&self) -> RedisConfig {
        self.config_at(self.port)
    }

    /// Returns the address for daegi with another port on this machine, for a proxy that forwards bytes.
    #[must_use]
    pub fn config_at(&self, port: u16) -> RedisConfig {
        self.access.config("", &format!("127.0.0.1:{port}"))
    }

    /// Returns the certificates and users of a secured server; `None` for others.
    #[must_use]
    pub fn access(&self) -> Option<Arc<RedisAccess>> {
        match &self.access {
            Access::Open => None,
            Access::Secured(access) => Some(access.clone()),
        }
    }

    /// Returns the port on the loopback interface, which stays the same over restarts.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the arguments of `MIGRATE` with which this server logs in at another one.
    #[must_use]
    pub fn migrate_login(&self) -> &'static [&'static str] {
        self.access.migrate_login()
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

    /// As [`Redis::start_again`] for a server whose certificate is invalid: waits only until it accepts
    /// connections.
    ///
    /// # Errors
    /// If it does not start.
    pub async fn start_again_unverified(&mut self) -> anyhow::Result<()> {
        self.stop();
        self.server = Some(self.spawn()?);
        eventually(START_TIMEOUT, "the server accepts connections", || async {
            TcpStream::connect(("127.0.0.1", self.port)).await.is_ok()
        })
        .await;
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

    /// Opens a connection that may do everything.
    ///
    /// # Errors
    /// If the server does not reply.
    pub async fn connection(&self) -> redis::RedisResult<MultiplexedConnection> {
        self.access.admin_client(self.port)?.get_multiplexed_async_connection().await
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
        let server = self.spawn().with_context(|| format!("cannot run {}", binary()))?;
        let pid = server.id().to_string();
        self.server = Some(server);
        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            let ended = self.server.as_mut().map(Child::try_wait).transpose()?;
            if ended.flatten().is_some() {
                self.server = None;
                return Ok(false);
            }
            if self.ready_process().await.as_ref() == Some(&pid) {
                return Ok(true);
            }
            sleep(POLL_INTERVAL).await;
        }
        bail!("{} did not reply within {START_TIMEOUT:?}", binary())
    }

    /// Returns the id of the process that replies on the port and has loaded its data. A server of
    /// another test may hold the port while ours is about to exit, so a reply alone proves nothing.
    async fn ready_process(&self) -> Option<String> {
        let text = self.info("server").await.ok()?;
        let process = info::field(&text, "process_id")?;
        let persistence = self.info("persistence").await.ok()?;
        // A sentinel loads nothing and has no such field.
        (info::field(&persistence, "loading") != Some("1")).then(|| process.to_owned())
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = Command::new(binary());
        self.kind.configure(&mut command, self.dir.path())?;
        self.access.configure(&mut command, self.port, self.kind.is_sentinel());
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

/// Returns the program of all servers.
#[expect(clippy::disallowed_methods, reason = "how tests run is no configuration of daegi")]
fn binary() -> String {
    std::env::var("DAEGI_TEST_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned())
}

fn is_missing(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::NotFound)
}
