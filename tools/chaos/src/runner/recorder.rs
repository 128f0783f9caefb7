//! Writes the history during the run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use daegi_runtime::Clock;

use crate::history::{self, Call, Entry, Fault, FaultKind, Millis, Outcome};

/// The history file, shared by all tasks.
#[derive(Debug)]
pub(crate) struct Recorder(Mutex<RecordedHistory>);

#[derive(Debug)]
struct RecordedHistory {
    /// `None` if calls are only counted.
    file: Option<BufWriter<File>>,
    calls: Calls,
    first_unanswered: Option<Call>,
    /// Killed processes with the time, for reading terms from logs.
    kills: Vec<(String, Millis)>,
    failed: Option<anyhow::Error>,
}

/// Number of calls.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Calls {
    pub(crate) all: u64,
    /// Calls without a successful reply; 0 without faults.
    pub(crate) unanswered: u64,
}

impl Recorder {
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path).with_context(|| path.display().to_string())?;
        Ok(Self::writing(Some(BufWriter::new(file))))
    }

    /// A recorder that only counts calls.
    pub(crate) fn counting() -> Self {
        Self::writing(None)
    }

    fn writing(file: Option<BufWriter<File>>) -> Self {
        let (calls, kills) = (Calls::default(), Vec::new());
        Self(Mutex::new(RecordedHistory {
            file,
            calls,
            first_unanswered: None,
            kills,
            failed: None,
        }))
    }

    pub(crate) fn calls(&self) -> Calls {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).calls
    }

    pub(crate) fn first_unanswered(&self) -> Option<Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).first_unanswered.clone()
    }

    /// Writes an entry. A write error fails the run at its end.
    pub(super) fn write(&self, entry: &Entry) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Fault(Fault { what: FaultKind::Kill, target, from, .. }) = entry {
            written.kills.push((target.clone(), *from));
        }
        if let Entry::Call(call) = entry {
            written.calls.all += 1;
            if !matches!(call.outcome, Outcome::Ok(_)) {
                written.calls.unanswered += 1;
                written.first_unanswered.get_or_insert_with(|| call.clone());
            }
        }
        if let Some(file) = &mut written.file
            && let Err(error) = history::write(file, entry)
        {
            written.failed = Some(error);
        }
    }

    /// The first kill of a process after this time.
    pub(super) fn killed_after(&self, member: &str, moment: Millis) -> Option<Millis> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kills = written.kills.iter().filter(|(target, at)| target == member && *at >= moment);
        kills.map(|(_, at)| *at).min()
    }

    pub(super) fn finish(&self) -> anyhow::Result<()> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &mut written.file {
            file.flush()?;
        }
        written.failed.take().map_or(Ok(()), Err)
    }
}

/// The current time.
pub(super) fn now() -> Millis {
    Clock::system().now_ms()
}
