//! Redis, an api pod and the baseline handler, started for one run.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use daegi_domain::{Settings, TicketKeys};
use daegi_runtime::Clock;
use daegi_store::{ItemStore, RedisStore};
use daegi_testkit::{ChildProcess, Redis, free_port};
use serde_json::{Value, json};

use super::line::Line;

/// The default of a fleet.
pub(super) const STORE_PARTITIONS: u16 = 16;
const POLL_INTERVAL: Duration = Duration::from_millis(2);
const READY_TIMEOUT: Duration = Duration::from_secs(30);

const SECRETS: &str = "1:000102030405060708090a0b0c0d0e0f";
pub(super) const PASS_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
    -----END PRIVATE KEY-----\n";

/// Added to the time of a round in ms. So long after their join, users stay in line only if they were seen.
pub(super) const ROUND_DELAY_MS: u64 = 1_000_000;

/// A global quota of 0 would stop every line. No leader runs, so only the scenarios admit.
pub(super) const SETTINGS: Settings = Settings { token_count_to_move: 1, tick_ms: 1_000 };

/// The child processes end when this value is dropped.
pub(crate) struct ApiFixture {
    pub(super) redis: Redis,
    pub(super) store: RedisStore,
    pub(super) keys: TicketKeys,
    pub(super) pod: Server,
    pub(super) baseline: Server,
}

/// A child process that serves HTTP.
pub(super) struct Server {
    process: ChildProcess,
    pub(super) address: String,
}

impl ApiFixture {
    pub(super) async fn start() -> anyhow::Result<Self> {
        let redis = Redis::start().await?;
        let store = RedisStore::open(&redis.url(), STORE_PARTITIONS, SETTINGS).await?;
        let pod = Self::pod(&redis.url())?;
        pod.wait_until_ready("/.well-known/jwks.json").await?;
        let baseline = Self::baseline()?;
        baseline.wait_until_ready("/").await?;
        Ok(Self { redis, store, keys: SECRETS.parse()?, pod, baseline })
    }

    /// Starts a pod with the store at this URL.
    pub(super) fn pod(store: &str) -> anyhow::Result<Server> {
        let (public, internal) = (Server::free_address(), Server::free_address());
        let command = Self::pod_command(store, &public, &internal)?;
        Server::start(command, public)
    }

    /// Starts a pod whose internal listener gets the load.
    pub(super) fn internal_pod(&self) -> anyhow::Result<Server> {
        let (public, internal) = (Server::free_address(), Server::free_address());
        let command = Self::pod_command(&self.redis.url(), &public, &internal)?;
        Server::start(command, internal)
    }

    fn pod_command(store: &str, public: &str, internal: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(sibling_binary("daegi-api")?);
        command
            .env("DAEGI_STORE", store)
            .env("DAEGI_PUBLIC_ADDR", public)
            .env("DAEGI_INTERNAL_ADDR", internal)
            .env("DAEGI_TICKET_SECRETS", SECRETS)
            .env("DAEGI_PASS_KEY", PASS_KEY)
            .env("DAEGI_LOG", "warn");
        Ok(command)
    }

    fn baseline() -> anyhow::Result<Server> {
        let address = Server::free_address();
        let mut command = Command::new(sibling_binary("daegi-bench")?);
        command.args(["baseline", "--addr", &address]);
        Server::start(command, address)
    }

    /// Creates a line with so many waiting users.
    pub(super) async fn line(&self, name: &str, users: usize) -> anyhow::Result<Line> {
        Line::fill(&self.store, name, users).await
    }

    /// Removes a line and waits until Redis has freed its memory in the background, because that would take a core from the
    /// next measurement.
    pub(super) async fn remove(&self, line: Line) -> anyhow::Result<()> {
        self.store.remove_item(&line.item, 0).await?;
        while self.redis_info("memory", "lazyfree_pending_objects").await? > 0.0 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// One numeric field of `INFO`.
    pub(super) async fn redis_info(&self, section: &str, field: &str) -> anyhow::Result<f64> {
        let mut connection = self.redis.connection().await?;
        let info: String = redis::cmd("INFO").arg(section).query_async(&mut connection).await?;
        let line = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(line.with_context(|| format!("INFO has no {field}"))?.trim().parse()?)
    }

    pub(super) async fn versions(&self, wrk: &str) -> anyhow::Result<Value> {
        let mut connection = self.redis.connection().await?;
        let text: String = redis::cmd("INFO").arg("server").query_async(&mut connection).await?;
        let redis = text.lines().find_map(|line| line.strip_prefix("redis_version:"));
        let daegi = env!("CARGO_PKG_VERSION");
        Ok(json!({ "daegi": daegi, "redis": redis, "wrk": wrk }))
    }

    /// CPU seconds of the Redis main thread.
    pub(super) async fn redis_cpu_seconds(&self) -> anyhow::Result<f64> {
        Ok(self.redis_info("cpu", "used_cpu_user_main_thread").await?
            + self.redis_info("cpu", "used_cpu_sys_main_thread").await?)
    }
}

impl Server {
    pub(super) fn start(mut command: Command, address: String) -> anyhow::Result<Self> {
        let process = command.stdout(Stdio::null()).spawn()?.into();
        Ok(Self { process, address })
    }

    pub(super) fn free_address() -> String {
        format!("127.0.0.1:{}", free_port())
    }

    /// Waits until this path returns a 2xx status, and returns how long that took.
    pub(super) async fn wait_until_ready(&self, path: &str) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let url = format!("http://{}{path}", self.address);
        let http = reqwest::Client::new();
        while started.elapsed() < READY_TIMEOUT {
            if http.get(&url).send().await.is_ok_and(|response| response.status().is_success()) {
                return Ok(started.elapsed());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        anyhow::bail!("{url} returned no 2xx status within {READY_TIMEOUT:?}")
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Resident memory.
    pub(super) fn memory_bytes(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        Ok(kilobytes.context("no VmRSS")?.parse::<f64>()? * 1024.0)
    }

    /// CPU seconds used since the start, user and system.
    pub(super) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let after_name = stat.rsplit_once(')').context("no process name in stat")?.1;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        ensure!(fields.len() > 12, "no times in stat");
        // utime and stime of proc(5), in ticks of 10 ms (USER_HZ is 100 on Linux).
        Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
    }
}

pub(super) fn now_ms() -> u64 {
    Clock::system().now_ms()
}

/// A binary built beside this one.
fn sibling_binary(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.exists(), "{} is not built: use `make bench`", path.display());
    Ok(path)
}
