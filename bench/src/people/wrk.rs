//! Load from `wrk`: as many requests as the other side can answer.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, ensure};
use tempfile::NamedTempFile;
use tokio::process::Command;

use super::arena::Server;
use crate::duel::median;

const MISSING: &str = "wrk is missing: all load of the bench comes from it (apt install wrk)";
/// Connections that are always busy.
const CONNECTIONS: &str = "256";

/// What one round brought.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Load {
    pub(super) requests: f64,
    pub(super) per_second: f64,
    /// What one request cost the server, in microseconds of CPU.
    pub(super) cpu: f64,
}

/// All rounds of one contestant.
#[derive(Debug, Default)]
pub(super) struct Loads(Vec<Load>);

impl Loads {
    pub(super) fn push(&mut self, load: Load) {
        self.0.push(load);
    }

    pub(super) fn per_second(&self) -> f64 {
        self.median(|load| load.per_second)
    }

    /// Of each round beside the same round of another contestant.
    pub(super) fn ratios(&self, other: &Self) -> Vec<f64> {
        let pairs = self.0.iter().zip(&other.0);
        pairs.map(|(mine, theirs)| mine.per_second / theirs.per_second).collect()
    }

    pub(super) fn cpu(&self) -> f64 {
        self.median(|load| load.cpu)
    }

    fn median(&self, of: impl Fn(&Load) -> f64) -> f64 {
        median(self.0.iter().map(of).collect())
    }
}

/// Asks these addresses in turn, over and over. Every load goes on where the last one ended, so that
/// all of them are asked however short a load is.
pub(super) struct Polls {
    addresses: NamedTempFile,
    next: AtomicUsize,
}

impl Polls {
    pub(super) fn of(addresses: &[String]) -> anyhow::Result<Self> {
        let mut file = NamedTempFile::new()?;
        file.write_all(addresses.join("\n").as_bytes())?;
        Ok(Self { addresses: file, next: AtomicUsize::new(0) })
    }

    pub(super) async fn at(&self, server: &Server, seconds: u32) -> anyhow::Result<Load> {
        let first = self.next.load(Ordering::Relaxed);
        let script = include_str!("../../wrk/polls.lua");
        let load = run(script, self.addresses.path(), first, server, seconds).await?;
        self.next.store(first + load.requests as usize, Ordering::Relaxed);
        Ok(load)
    }
}

/// Joins people nobody has seen before.
pub(super) struct Joins {
    door: NamedTempFile,
}

impl Joins {
    /// `prefix` makes their ids differ from everybody's before.
    pub(super) fn at_door(door: &str, prefix: &str) -> anyhow::Result<Self> {
        let mut file = NamedTempFile::new()?;
        write!(file, "{door}\n{prefix}")?;
        Ok(Self { door: file })
    }

    pub(super) async fn at(&self, server: &Server, seconds: u32) -> anyhow::Result<Load> {
        run(include_str!("../../wrk/joins.lua"), self.door.path(), 0, server, seconds).await
    }
}

/// Of the program that is there; without it there is no load.
pub(super) fn version() -> anyhow::Result<String> {
    // It says its version and then that it wants an address.
    let output = std::process::Command::new("wrk").arg("-v").output().context(MISSING)?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split_whitespace().nth(1).context(MISSING)?.to_owned())
}

/// `input` and `first` are for the script.
async fn run(
    script: &str,
    input: &Path,
    first: usize,
    server: &Server,
    seconds: u32,
) -> anyhow::Result<Load> {
    let mut file = tempfile::Builder::new().suffix(".lua").tempfile()?;
    file.write_all(script.as_bytes())?;
    let before = server.cpu()?;
    let output = Command::new("wrk")
        .args(["-t1", "-c", CONNECTIONS, "-d", &format!("{seconds}s"), "-s"])
        .arg(file.path())
        .arg(format!("http://{}", server.address))
        .arg(input)
        .arg(first.to_string())
        .stderr(Stdio::inherit())
        .output()
        .await
        .context(MISSING)?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "wrk failed: {text}");
    ensure!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "errors: {text}");
    let requests = text.lines().find_map(|line| line.trim().split_once(" requests in"));
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    let requests: f64 = requests.context("no count")?.0.trim().parse()?;
    Ok(Load {
        requests,
        cpu: (server.cpu()? - before) * 1e6 / requests,
        per_second: rate.context("no rate")?.trim().parse()?,
    })
}
