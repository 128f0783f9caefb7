//! Processes that share one core, so that the other is free for whatever else the machine does.
//!
//! Redis and a leader never work at the same time for one line: each waits for the other. On two cores each
//! call wakes a core that sleeps, twice, and on a virtual machine that costs more than it gains.

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
    /// Nothing where that cannot be done, after one loud line.
    pub(super) fn share(processes: Vec<u32>) -> anyhow::Result<Option<Self>> {
        let Ok(told) = Command::new("taskset").args(["-cp", &own_id()]).output() else {
            progress("TASKSET IS MISSING: Redis and the leader are not on one core");
            return Ok(None);
        };
        let told = String::from_utf8(told.stdout)?;
        let before = told.trim().rsplit(' ').next().context("taskset tells nothing")?.to_owned();
        let shared = Self { processes, before };
        let last = shared.before.rsplit([',', '-']).next().unwrap_or_default();
        shared.place(last)?;
        Ok(Some(shared))
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

fn own_id() -> String {
    std::process::id().to_string()
}
