//! The longest script of a leader in instructions, counted by callgrind.
//!
//! All other clients of a Redis wait while a script runs, so no single script may be long. A clock also measures
//! interruptions by the machine; the number of instructions is the same on a busy machine. See ADR 016.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use daegi_store::{MAX_USERS_PER_CALL, RedisStore, SharedStore};
use tempfile::TempDir;

use super::admissions::{USERS, admit_all, ready_line};
use super::fixture::{SETTINGS, STORE_PARTITIONS, Server};
use crate::measurement::{Measurement, Target, median};
use crate::report::progress;

/// About 3 ms at the 6.5 million instructions per millisecond of the recorded run.
const MAX_MILLIONS: f64 = 20.0;
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Admits one line and empties the outbox on a Redis under callgrind. Returns `None` where valgrind is missing or Redis has no
/// symbols.
pub(super) async fn measure() -> anyhow::Result<Option<Measurement>> {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        progress("valgrind is missing: instructions of scripts not counted");
        return Ok(None);
    }
    progress("counting the instructions of each script, 1 to 2 minutes");
    let directory = TempDir::new()?;
    let address = Server::free_address();
    let port = address.rsplit(':').next().context("no port")?;
    let mut command = Command::new("valgrind");
    // Collects only inside of a script and writes one file per script.
    command.args(["--tool=callgrind", "--instr-atstart=no", "--quiet"]);
    command.args(["--toggle-collect=evalShaCommand", "--dump-after=evalShaCommand"]);
    command.arg(format!("--callgrind-out-file={}", directory.path().join("count").display()));
    command.args(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", ""]);
    command.args(["--appendonly", "no"]);
    let redis = Server::start(command, address.clone())?;
    let store = open(&format!("redis://{address}")).await?;
    ready_line(&store, "instructions").await?;
    control(&redis, "on")?;
    let store: SharedStore = Arc::new(store);
    admit_all(&store).await?;
    control(&redis, "off")?;
    let counts = counts(&directory)?;
    if counts.is_empty() {
        progress("this redis-server has no symbols: instructions of scripts not counted");
        return Ok(None);
    }
    let scripts = (USERS / MAX_USERS_PER_CALL) as usize;
    ensure!(counts.len() > scripts, "{} of at least {scripts} scripts counted", counts.len());
    let longest = counts.iter().copied().fold(0.0, f64::max);
    let name = "… longest script, by instructions";
    let measurement =
        Measurement::new(name, longest / 1e6, "million", Target::AtMost(MAX_MILLIONS));
    let detail = format!("of {} scripts; median {:.1} million", counts.len(), median(counts) / 1e6);
    Ok(Some(measurement.with_detail(detail)))
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

/// Switches counting on or off.
fn control(redis: &Server, state: &str) -> anyhow::Result<()> {
    let mut command = Command::new("callgrind_control");
    command
        .args(["-i", state, &redis.id().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = command.status().context("callgrind_control comes with valgrind")?;
    ensure!(status.success(), "callgrind_control -i {state} failed");
    Ok(())
}

/// The instructions of each script, in no order.
fn counts(directory: &TempDir) -> anyhow::Result<Vec<f64>> {
    let mut counts = Vec::new();
    for file in std::fs::read_dir(directory.path())? {
        let text = std::fs::read_to_string(file?.path())?;
        // A file written before counting began has no totals.
        if let Some(count) = text.lines().find_map(|line| line.strip_prefix("totals: ")) {
            counts.push(count.parse()?);
        }
    }
    Ok(counts)
}
