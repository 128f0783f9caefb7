//! `infra/kafka/broker.sh` as a child process that is controlled over its stdin.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, bail};
use tokio::task::spawn_blocking;

/// The prefix of the line that the script prints when the broker is ready.
const READY: &str = "DAEGI_KAFKA=";

/// The prefixes of the lines with secured listeners.
const SECURED: [&str; 2] = ["DAEGI_KAFKA_SASL=", "DAEGI_KAFKA_MUTUAL="];

/// The script's exit codes, as its `--help` lists them.
const EXIT_TOOLS_MISSING: i32 = 69;
const EXIT_PORT_TAKEN: i32 = 75;

/// A running script. It stops its broker when its stdin closes, so that no broker outlives its
/// test.
#[derive(Debug)]
pub(super) struct BrokerScript(Child);

/// Where a broker keeps its data.
#[derive(Debug, Clone, Copy)]
pub(super) enum DataDir<'a> {
    /// In this directory, where the next start finds it.
    Persistent(&'a Path),
    /// In a directory of the script, which removes it at the end.
    Temporary,
}

/// The result of a start.
#[derive(Debug)]
pub(super) enum Launch {
    /// With the addresses of the listeners with SASL and with client certificates, empty without them.
    Ready(BrokerScript, [String; 2]),
    PortTaken,
}

/// Java or Maven are not installed; the message of the script.
#[derive(Debug)]
pub(super) struct ToolsMissing(String);

impl BrokerScript {
    /// Starts the script and waits until it reports that the broker is ready. The script has its
    /// own timeout.
    pub(super) async fn run(
        port: u16,
        data: DataDir<'_>,
        secured: Option<&Path>,
    ) -> anyhow::Result<Launch> {
        let mut stderr_file = tempfile::tempfile()?;
        let child = spawn(port, data, secured, stderr_file.try_clone()?);
        let child = child.context("cannot run broker.sh")?;
        let mut script = Self(child);
        let stdout = script.0.stdout.take().context("broker.sh has no stdout")?;
        if let Some(secured) = spawn_blocking(move || read_ready_lines(stdout)).await?? {
            return Ok(Launch::Ready(script, secured));
        }
        let code = script.0.wait()?.code();
        let message = from_start(&mut stderr_file)?;
        match code {
            Some(EXIT_PORT_TAKEN) => Ok(Launch::PortTaken),
            Some(EXIT_TOOLS_MISSING) => Err(ToolsMissing(message.trim().to_owned()).into()),
            _ => bail!("kafka did not start: {}", message.trim()),
        }
    }

    /// Closes the script's stdin, after which it stops the broker cleanly.
    pub(super) fn stop(self) {
        drop(self);
    }

    /// Makes the script kill the broker.
    pub(super) fn kill(mut self) {
        if let Some(stdin) = &mut self.0.stdin {
            // Fails only for a script that has ended already.
            let _ = writeln!(stdin, "kill");
        }
    }
}

impl Drop for BrokerScript {
    fn drop(&mut self) {
        // `wait` closes stdin first. It fails only for a script that has ended already.
        let _ = self.0.wait();
    }
}

impl fmt::Display for ToolsMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ToolsMissing {}

fn spawn(
    port: u16,
    data: DataDir<'_>,
    secured: Option<&Path>,
    stderr_file: File,
) -> io::Result<Child> {
    let mut command = Command::new(path());
    command.args(["--stdin", "--port", &port.to_string()]);
    if let DataDir::Persistent(dir) = data {
        command.args(["--keep", "--data"]).arg(dir);
    }
    if let Some(dir) = secured {
        command.arg("--secured").arg(dir);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr_file).spawn()
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

/// Reads until the ready line, and returns the addresses of secured listeners. Returns `None` if the script
/// ended without it.
fn read_ready_lines(stdout: ChildStdout) -> io::Result<Option<[String; 2]>> {
    let mut secured = [String::new(), String::new()];
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        if line.starts_with(READY) {
            return Ok(Some(secured));
        }
        for (prefix, address) in SECURED.into_iter().zip(&mut secured) {
            if let Some(found) = line.strip_prefix(prefix) {
                found.clone_into(address);
            }
        }
    }
    Ok(None)
}
