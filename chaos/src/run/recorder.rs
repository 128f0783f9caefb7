//! Writes the history while it happens.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use daegi_runtime::Clock;

use crate::history::{self, Entry, Fault, FaultKind, Millis};

/// The file, shared by all who have something to tell.
#[derive(Debug)]
pub(super) struct Recorder(Mutex<Written>);

#[derive(Debug)]
struct Written {
    file: BufWriter<File>,
    /// What was killed, and when: for whoever reads logs later.
    kills: Vec<(String, Millis)>,
    failed: Option<anyhow::Error>,
}

impl Recorder {
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        let (file, kills) = (BufWriter::new(file), Vec::new());
        Ok(Self(Mutex::new(Written { file, kills, failed: None })))
    }

    /// Writes an entry; a file that cannot be written fails the run at its end.
    pub(super) fn write(&self, entry: &Entry) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Fault(Fault { what: FaultKind::Kill, target, from, .. }) = entry {
            written.kills.push((target.clone(), *from));
        }
        if let Err(error) = history::write(&mut written.file, entry) {
            written.failed = Some(error);
        }
    }

    /// When a member was killed, for the first time after this moment.
    pub(super) fn killed_after(&self, member: &str, moment: Millis) -> Option<Millis> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kills = written.kills.iter().filter(|(target, at)| target == member && *at >= moment);
        kills.map(|(_, at)| *at).min()
    }

    pub(super) fn finish(&self) -> anyhow::Result<()> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.file.flush()?;
        written.failed.take().map_or(Ok(()), Err)
    }
}

/// This moment.
pub(super) fn now() -> Millis {
    Clock::system().now_ms()
}
