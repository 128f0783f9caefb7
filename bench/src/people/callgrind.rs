//! A program under callgrind, which counts instructions. A count is the same on a busy machine as on a
//! quiet one, so it tells what a clock cannot. The kernel's part is not in it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::report::progress;

/// Says loudly what is not done where callgrind is missing.
pub(super) fn is_there(without: &str) -> bool {
    let there = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !there {
        progress(&format!("VALGRIND IS MISSING: {without}"));
    }
    there
}

/// The same command under callgrind, which begins without counting and writes what it counted into a
/// directory, in files of their own.
pub(super) fn watched(command: &Command, options: &[&str], directory: &Path) -> Command {
    let mut watched = Command::new("valgrind");
    watched
        .args(["--tool=callgrind", "--instr-atstart=no", "--quiet"])
        .args(options)
        .arg(format!("--callgrind-out-file={}", directory.join("count").display()))
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            watched.env(name, value);
        }
    }
    watched
}

/// Tells a program that is watched what to do about counting.
pub(super) fn control(process: u32, what: &[&str]) -> anyhow::Result<()> {
    let told = Command::new("callgrind_control")
        .args(what)
        .arg(process.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(told.success(), "callgrind_control {what:?} failed");
    Ok(())
}

/// What was counted since the last time, in no order: a count for each time that it was written.
pub(super) fn take_counts(directory: &Path) -> anyhow::Result<Vec<f64>> {
    let mut counts = Vec::new();
    for file in std::fs::read_dir(directory)? {
        let path = file?.path();
        let text = std::fs::read_to_string(&path)?;
        std::fs::remove_file(&path)?;
        // A file that is there before anything was counted says nothing.
        if let Some(count) = text.lines().find_map(|line| line.strip_prefix("totals: ")) {
            counts.push(count.parse().context("no count")?);
        }
    }
    Ok(counts)
}
