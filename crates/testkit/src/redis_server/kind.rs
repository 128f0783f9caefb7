//! The command line of a `redis-server`.

use std::io;
use std::path::Path;
use std::process::Command;

/// The role of a server and its options.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// A data server with these additional options.
    Server(Vec<String>),
    /// A sentinel with this configuration file.
    Sentinel(String),
}

impl Kind {
    /// Loses its data when it stops.
    pub(super) fn ephemeral() -> Self {
        Self::with(&["--appendonly", "no"])
    }

    /// Keeps its data over a restart: everything is written before the reply, which suffices if the
    /// process is killed. An fsync is needed only for power cuts.
    pub(super) fn durable() -> Self {
        Self::with(&["--appendonly", "yes", "--appendfsync", "no"])
    }

    pub(super) fn with(options: &[&str]) -> Self {
        Self::Server(options.iter().map(|option| (*option).to_owned()).collect())
    }

    pub(super) fn is_sentinel(&self) -> bool {
        matches!(self, Self::Sentinel(_))
    }

    pub(super) fn configure(&self, command: &mut Command, dir: &Path) -> io::Result<()> {
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
        command.args(["--bind", "127.0.0.1", "--dir"]).arg(dir);
        Ok(())
    }
}
