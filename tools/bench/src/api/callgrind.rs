//! A Redis under callgrind, which counts the instructions of each call of one function.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use daegi_store::RedisStore;
use tempfile::TempDir;

use super::fixture::{SETTINGS, STORE_PARTITIONS, Server};
use crate::report::progress;

const RETRY_INTERVAL: Duration = Duration::from_millis(20);
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub(super) enum CountedFunction {
    /// Each script, without the protocol around it.
    Script,
    /// Each command of a client, scripts included.
    Command,
}

/// The process ends when this value is dropped.
pub(super) struct CountedRedis {
    redis: Server,
    directory: TempDir,
    pub(super) store: Arc<RedisStore>,
}

impl CountedRedis {
    /// Starts a server that does not count yet. Returns `None` where valgrind is missing.
    pub(super) async fn start(counted: CountedFunction) -> anyhow::Result<Option<Self>> {
        if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
            progress("valgrind is missing: instructions of scripts not counted");
            return Ok(None);
        }
        let function = match counted {
            CountedFunction::Script => "evalShaCommand",
            CountedFunction::Command => "processCommand",
        };
        let directory = TempDir::new()?;
        let address = Server::free_address();
        let port = address.rsplit(':').next().context("no port")?;
        let mut command = Command::new("valgrind");
        // Collects only inside of the function and writes one file per call.
        command.args(["--tool=callgrind", "--instr-atstart=no", "--quiet"]);
        command.arg(format!("--toggle-collect={function}"));
        command.arg(format!("--dump-after={function}"));
        command.arg(format!("--callgrind-out-file={}", directory.path().join("count").display()));
        command.args(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no"]);
        let redis = Server::start(command, address.clone())?;
        let store = Arc::new(open(&format!("redis://{address}")).await?);
        Ok(Some(Self { redis, directory, store }))
    }

    /// Counts the calls from now on.
    pub(super) fn start_counting(&self) -> anyhow::Result<()> {
        self.control("on")
    }

    /// Stops counting. Returns the instructions of each call, in no order, or `None` if Redis has no symbols.
    pub(super) fn take_counts(&self) -> anyhow::Result<Option<Vec<f64>>> {
        self.control("off")?;
        let mut counts = Vec::new();
        for file in std::fs::read_dir(self.directory.path())? {
            let path = file?.path();
            let text = std::fs::read_to_string(&path)?;
            // A file written before counting began has no totals.
            if let Some(count) = text.lines().find_map(|line| line.strip_prefix("totals: ")) {
                counts.push(count.parse()?);
            }
            std::fs::remove_file(path)?;
        }
        if counts.is_empty() {
            progress("this redis-server has no symbols: instructions of scripts not counted");
            return Ok(None);
        }
        Ok(Some(counts))
    }

    fn control(&self, state: &str) -> anyhow::Result<()> {
        let mut command = Command::new("callgrind_control");
        command
            .args(["-i", state, &self.redis.id().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let status = command.status().context("callgrind_control comes with valgrind")?;
        ensure!(status.success(), "callgrind_control -i {state} failed");
        Ok(())
    }
}

/// Redis starts slowly under valgrind, so the first attempts fail.
async fn open(url: &str) -> anyhow::Result<RedisStore> {
    let started = Instant::now();
    loop {
        match RedisStore::open(url, STORE_PARTITIONS, SETTINGS).await {
            Err(_) if started.elapsed() < READY_TIMEOUT => tokio::time::sleep(RETRY_INTERVAL).await,
            opened => return Ok(opened?),
        }
    }
}
