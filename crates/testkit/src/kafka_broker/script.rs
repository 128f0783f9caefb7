//! `infra/kafka/broker.sh` as a child process that obeys its stdin.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use tokio::task::spawn_blocking;

/// What the script prints when everything answers, before the addresses.
const READY: &str = "DAEGI_KAFKA=";

/// The script's exit codes, as its `--help` lists them.
const TOOLS_MISSING: i32 = 69;
const PORT_TAKEN: i32 = 75;

/// A running script. It ends its broker when our end of its stdin closes, whatever the reason, so
/// that no broker outlives its test.
#[derive(Debug)]
pub(super) struct Script(Child);

/// Where a broker keeps its data.
#[derive(Debug, Clone, Copy)]
pub(super) enum Data<'a> {
    /// In a directory of ours, where the next start finds it.
    Kept(&'a Path),
    /// In one of the script's own, which removes it at the end.
    Dropped,
}

/// How a start went, if it went as it may.
#[derive(Debug)]
pub(super) enum Launch {
    Ready(Script),
    PortTaken,
}

/// Java or Maven are not installed; the script's own words.
#[derive(Debug)]
pub(super) struct Missing(String);

impl Script {
    /// Starts the script and waits until it says that the broker is ready. Its own deadline
    /// bounds the wait.
    pub(super) async fn run(port: u16, data: Data<'_>) -> anyhow::Result<Launch> {
        let mut complaints = tempfile::tempfile()?;
        let child = spawn(port, data, complaints.try_clone()?).context("cannot run broker.sh")?;
        let mut script = Self(child);
        let stdout = script.0.stdout.take().context("broker.sh has no stdout")?;
        if spawn_blocking(move || says_ready(stdout)).await?? {
            return Ok(Launch::Ready(script));
        }
        let code = script.0.wait()?.code();
        let words = from_start(&mut complaints)?;
        match code {
            Some(PORT_TAKEN) => Ok(Launch::PortTaken),
            Some(TOOLS_MISSING) => Err(Missing(words.trim().to_owned()).into()),
            _ => bail!("kafka did not start: {}", words.trim()),
        }
    }

    /// Closes the script's stdin, at which it stops the broker cleanly.
    pub(super) fn stop(self) {
        drop(self);
    }

    /// Lets the script kill the broker.
    pub(super) fn kill(mut self) {
        if let Some(stdin) = &mut self.0.stdin {
            // Fails only for a script that is gone already.
            let _ = writeln!(stdin, "kill");
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // `wait` closes stdin first. It fails only for a script that is gone already.
        let _ = self.0.wait();
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

fn spawn(port: u16, data: Data<'_>, complaints: File) -> io::Result<Child> {
    let mut command = Command::new(path());
    command.args(["--stdin", "--port", &port.to_string()]);
    if let Data::Kept(dir) = data {
        command.args(["--keep", "--data"]).arg(dir);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints).spawn()
}

fn from_start(file: &mut File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/kafka/broker.sh")
}

/// Reads until the ready line; `false` if the script ended without it.
fn says_ready(stdout: ChildStdout) -> io::Result<bool> {
    for line in BufReader::new(stdout).lines() {
        if line?.starts_with(READY) {
            return Ok(true);
        }
    }
    Ok(false)
}
