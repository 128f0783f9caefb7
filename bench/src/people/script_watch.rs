//! What every single script of a Redis takes, and for how long of it the machine took its core away.
//!
//! A machine that others use, too, stops a core now and then, and a script of half a millisecond is then one
//! of ten by the clock. The kernel knows better: it is told when a script begins and ends, and its timer beats
//! on that core all the while (`script_watch.bt`).

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use daegi_testkit::process::signal;
use daegi_testkit::{Process, Redis};
use redis::Script as Lua;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::time::timeout;

use crate::report::progress;

const PROGRAM: &str = include_str!("script_watch.bt");
/// How long the watch has to tell of a script, until another one is tried.
const GLANCE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(20);

/// A script over this is one too long, in milliseconds.
pub(super) const TOO_LONG: f64 = 5.0;

/// A script, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Script {
    /// By the clock.
    pub(super) took: f64,
    /// How long of it the core stood still, at least.
    pub(super) stood: f64,
}

impl Script {
    /// How long it took while its core ran.
    pub(super) fn own(self) -> f64 {
        self.took - self.stood
    }

    /// From a line of two numbers.
    fn parse(line: &str) -> Option<Self> {
        let (took, stood) = line.split_once(' ')?;
        let milliseconds = |text: &str| Some(text.parse::<f64>().ok()? / 1e6);
        Some(Self { took: milliseconds(took)?, stood: milliseconds(stood)? })
    }
}

/// Sees all scripts of a Redis.
pub(super) struct Watch {
    process: Process,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    /// Begins; nothing but a loud line where the kernel does not tell.
    pub(super) async fn start(redis: &Redis) -> Option<Self> {
        let watch = Self::attach(redis).await;
        watch.inspect_err(|why| progress(&format!("NOBODY TIMES SINGLE SCRIPTS: {why:#}"))).ok()
    }

    async fn attach(redis: &Redis) -> anyhow::Result<Self> {
        let number = redis.pid().context("Redis has ended")?.to_string();
        let program =
            PROGRAM.replace("PROCESS", &number).replace("PROGRAM", &format!("/proc/{number}/exe"));
        let mut bpftrace = Command::new("bpftrace");
        bpftrace.args(["-B", "line", "-e", &program]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::from(bpftrace.spawn().context("bpftrace")?);
        let stdout = process.stdout.take().context("no output")?;
        let lines = BufReader::new(ChildStdout::from_std(stdout)?).lines();
        let mut watch = Self { process, lines };
        let seen = timeout(PATIENCE, watch.sees_scripts(redis)).await;
        seen.context("bpftrace tells of no script")??;
        Ok(watch)
    }

    /// It takes a second to begin, and does not say when it has.
    async fn sees_scripts(&mut self, redis: &Redis) -> anyhow::Result<()> {
        let (mut connection, script) = (redis.connection().await?, Lua::new("return 1"));
        loop {
            script.invoke_async::<_, ()>(&mut connection).await?;
            match timeout(GLANCE, self.lines.next_line()).await {
                Ok(Ok(Some(line))) if Script::parse(&line).is_some() => return Ok(()),
                Ok(Ok(None)) => bail!("bpftrace says: {}", self.last_words()),
                Ok(Err(error)) => return Err(error.into()),
                Ok(Ok(Some(_))) | Err(_) => {}
            }
        }
    }

    fn last_words(&mut self) -> String {
        let mut said = String::new();
        // What cannot be read is not said.
        let _ = self.process.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
        said.lines().last().unwrap_or_default().to_owned()
    }

    /// All scripts since then. Whatever else it says is a script that it may have missed.
    pub(super) async fn end(mut self) -> anyhow::Result<Vec<Script>> {
        signal(&self.process, "INT");
        let mut scripts = Vec::new();
        while let Some(line) = self.lines.next_line().await? {
            match Script::parse(&line) {
                Some(script) => scripts.push(script),
                None if line.is_empty() => {}
                None => bail!("bpftrace says: {line}"),
            }
        }
        Ok(scripts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_takes_while_its_core_stands_still_is_not_its_own() {
        let script = Script::parse("11500000 11000000").unwrap();
        assert_eq!(script, Script { took: 11.5, stood: 11.0 });
        assert_eq!(script.own(), 0.5);
    }

    #[test]
    fn what_is_no_script_is_not_taken_for_one() {
        for line in ["", "Attaching 4 probes...", "Lost 12 events", "11500000"] {
            assert_eq!(Script::parse(line), None, "{line}");
        }
    }
}
