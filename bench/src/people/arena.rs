//! A Redis, pods and a bare handler, of this run alone.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use daegi_domain::{Settings, TicketKeys};
use daegi_runtime::Clock;
use daegi_store::{RedisStore, Store};
use daegi_testkit::{Process, Redis, free_port};
use serde_json::{Value, json};

use super::line::Line;
use super::wrk;

/// As many as a fleet has by default.
pub(super) const STORE_PARTITIONS: u16 = 16;
/// How many batches of events are forgotten in one call.
const TOGETHER: u32 = 1_000;
/// How often a process is asked whether it answers yet.
const GLANCE: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_secs(30);

const SECRETS: &str = "1:000102030405060708090a0b0c0d0e0f";
const PASS_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
    -----END PRIVATE KEY-----\n";

/// Whoever joined so long ago is kept only by having been seen, in milliseconds.
pub(super) const LATER: u64 = 1_000_000;

/// Nobody is let in unless a contest does it.
pub(super) const SETTINGS: Settings = Settings { token_count_to_move: 0, tick_ms: 1_000 };

/// Everything contests need. It ends with this value.
pub(crate) struct Arena {
    pub(super) redis: Redis,
    pub(super) store: RedisStore,
    pub(super) keys: TicketKeys,
    pub(super) pod: Server,
    pub(super) bare: Server,
}

/// A process that answers HTTP.
pub(super) struct Server {
    process: Process,
    pub(super) address: String,
}

impl Arena {
    pub(super) async fn set_up() -> anyhow::Result<Self> {
        let redis = Redis::start().await?;
        let store = RedisStore::open(&redis.url(), STORE_PARTITIONS, SETTINGS).await?;
        let pod = Self::pod(&redis.url())?;
        pod.answers("/.well-known/jwks.json").await?;
        let bare = Server::start(Self::bare_command)?;
        bare.answers("/").await?;
        Ok(Self { redis, store, keys: SECRETS.parse()?, pod, bare })
    }

    /// Another pod on the same store.
    pub(super) fn another_pod(&self) -> anyhow::Result<Server> {
        Self::pod(&self.redis.url())
    }

    /// A pod that finds its store at this address.
    pub(super) fn pod(store: &str) -> anyhow::Result<Server> {
        Server::start(|address| Self::pod_command(store, address))
    }

    pub(super) fn pod_command(store: &str, address: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(own_binary("daegi-api")?);
        command
            .env("DAEGI_STORE", store)
            .env("DAEGI_PUBLIC_ADDR", address)
            .env("DAEGI_INTERNAL_ADDR", format!("127.0.0.1:{}", free_port()))
            .env("DAEGI_TICKET_SECRETS", SECRETS)
            .env("DAEGI_PASS_KEY", PASS_KEY)
            .env("DAEGI_LOG", "warn");
        Ok(command)
    }

    pub(super) fn bare_command(address: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(own_binary("daegi-bench")?);
        command.args(["bare", "--addr", address]);
        Ok(command)
    }

    /// A line in which so many people wait, unless somebody made it before.
    pub(super) async fn line(&self, name: &str, people: usize) -> anyhow::Result<Line> {
        Line::fill(&self.store, name, people).await
    }

    /// Takes a line away. Redis frees its memory in the background, which is waited for: it would
    /// take a core from whatever is measured next.
    pub(super) async fn remove(&self, line: Line) -> anyhow::Result<()> {
        self.store.remove_item(&line.item).await?;
        while self.info("memory", "lazyfree_pending_objects").await? > 0.0 {
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    }

    /// One field of `INFO`.
    pub(super) async fn info(&self, section: &str, field: &str) -> anyhow::Result<f64> {
        let mut connection = self.redis.connection().await?;
        let text: String = redis::cmd("INFO").arg(section).query_async(&mut connection).await?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(line.with_context(|| format!("INFO has no {field}"))?.trim().parse()?)
    }

    /// The processes that let people in: Redis, and this one, which leads.
    pub(super) fn of_a_leader(&self) -> anyhow::Result<Vec<u32>> {
        Ok(vec![self.redis.pid().context("Redis has ended")?, std::process::id()])
    }

    /// Of what takes part.
    pub(super) async fn versions(&self) -> anyhow::Result<Value> {
        let mut connection = self.redis.connection().await?;
        let text: String = redis::cmd("INFO").arg("server").query_async(&mut connection).await?;
        let redis = text.lines().find_map(|line| line.strip_prefix("redis_version:"));
        let (daegi, wrk) = (env!("CARGO_PKG_VERSION"), wrk::version()?);
        Ok(json!({ "daegi": daegi, "redis": redis, "wrk": wrk }))
    }

    /// Forgets all events, for which nobody waits here.
    pub(super) async fn empty_outbox(&self) -> anyhow::Result<()> {
        for partition in 0..self.store.partitions() {
            loop {
                let batches = self.store.outbox_read(partition, None, TOGETHER).await?;
                if batches.is_empty() {
                    break;
                }
                let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
                self.store.outbox_ack(partition, &ids).await?;
            }
        }
        Ok(())
    }

    /// Seconds of CPU that Redis has used to serve clients.
    pub(super) async fn redis_cpu(&self) -> anyhow::Result<f64> {
        Ok(self.info("cpu", "used_cpu_user_main_thread").await?
            + self.info("cpu", "used_cpu_sys_main_thread").await?)
    }
}

impl Server {
    pub(super) fn start(command: impl Fn(&str) -> anyhow::Result<Command>) -> anyhow::Result<Self> {
        let address = format!("127.0.0.1:{}", free_port());
        let child = command(&address)?.stdout(Stdio::null()).spawn()?;
        Ok(Self { process: child.into(), address })
    }

    /// Waits until an address answers with 200, and says how long that took.
    pub(super) async fn answers(&self, path: &str) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let url = format!("http://{}{path}", self.address);
        let http = reqwest::Client::new();
        while started.elapsed() < PATIENCE {
            if http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(started.elapsed());
            }
            tokio::time::sleep(GLANCE).await;
        }
        anyhow::bail!("{url} does not answer")
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Resident memory, in bytes.
    pub(super) fn memory(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        Ok(kilobytes.context("no VmRSS")?.parse::<f64>()? * 1024.0)
    }

    /// Seconds of CPU used so far.
    pub(super) fn cpu(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let after_name = stat.rsplit_once(')').context("no name")?.1;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        ensure!(fields.len() > 12, "no times");
        // utime and stime, in hundredths of a second on every Linux there is.
        Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
    }
}

pub(super) fn now() -> u64 {
    Clock::system().now_ms()
}

/// Built beside this program.
fn own_binary(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.exists(), "{} is not built: use `make bench`", path.display());
    Ok(path)
}
