//! What a `redis-server` is started as.

use std::io;
use std::path::Path;
use std::process::Command;

/// The role of a server, with what has to be known before it starts.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Keeps lines, with these options beside the usual ones.
    Server(Vec<String>),
    /// Watches a service; the text is the file it keeps its memory in.
    Sentinel(String),
}

impl Kind {
    /// What it knows passes with it.
    pub(super) fn passing() -> Self {
        Self::with(&["--appendonly", "no"])
    }

    /// Has lost nothing when it comes back: everything is written before it is answered, which is
    /// enough for a process that is killed. A disk is waited for only against power cuts.
    pub(super) fn durable() -> Self {
        Self::with(&["--appendonly", "yes", "--appendfsync", "no"])
    }

    pub(super) fn with(options: &[&str]) -> Self {
        Self::Server(options.iter().map(|option| (*option).to_owned()).collect())
    }

    pub(super) fn configure(&self, command: &mut Command, port: u16, dir: &Path) -> io::Result<()> {
        match self {
            Self::Server(options) => {
                command.args(["--save", "", "--daemonize", "no"]).args(options);
            }
            Self::Sentinel(text) => {
                let file = dir.join("sentinel.conf");
                if !file.exists() {
                    std::fs::write(&file, text)?;
                }
                command.arg(file).arg("--sentinel");
            }
        }
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"]).arg(dir);
        Ok(())
    }
}
