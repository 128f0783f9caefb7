//! Processes that share one core, so that the other is free for whatever else the machine does.
//!
//! Redis and a leader hardly work at the same time for one line: each waits for the other. On a core each,
//! every call wakes one that sleeps, and a machine that is asked for all it has stops more often.

use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::report::progress;

/// These processes are on one core until this value ends.
pub(super) struct OneCore {
    processes: Vec<u32>,
    /// Where they were before, as `taskset` writes it.
    before: String,
}

impl OneCore {
    pub(super) fn share(processes: Vec<u32>) -> anyhow::Result<Self> {
        let own = std::process::id().to_string();
        let told = Command::new("taskset").args(["-cp", &own]).output().context("taskset")?;
        // A sentence that ends with the cores, as "0,1" or "0-3".
        let told = String::from_utf8(told.stdout)?;
        let (_, before) = told.trim().rsplit_once(' ').context("taskset tells nothing")?;
        let shared = Self { processes, before: before.to_owned() };
        shared.place(before.rsplit([',', '-']).next().unwrap_or(before))?;
        Ok(shared)
    }

    /// Puts every thread there is on these cores; later ones follow them.
    fn place(&self, cores: &str) -> anyhow::Result<()> {
        for process in &self.processes {
            let placed = Command::new("taskset")
                .args(["-acp", cores, &process.to_string()])
                .stdout(Stdio::null())
                .status()?;
            ensure!(placed.success(), "process {process} cannot be put on core {cores}");
        }
        Ok(())
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        if let Err(error) = self.place(&self.before) {
            progress(&format!("NOT ALL CORES ARE USED ANY MORE: {error:#}"));
        }
    }
}
