use std::collections::{BTreeMap, VecDeque};

use daegi_domain::Millis;

use crate::limits::{HEARTBEAT_RETENTION_MS, MAX_AUDIT_ENTRIES};
use crate::types::HeartbeatRecord;

/// The latest changes by operators, newest first.
#[derive(Debug, Clone, Default)]
pub(super) struct AuditLog(VecDeque<String>);

/// The last heartbeat of each process, with the time it was written.
#[derive(Debug, Clone, Default)]
pub(super) struct Heartbeats(BTreeMap<String, (Millis, String)>);

impl AuditLog {
    pub(super) fn append(&mut self, entry: &str) {
        self.0.push_front(entry.to_owned());
        self.0.truncate(MAX_AUDIT_ENTRIES as usize);
    }

    pub(super) fn read(&self, limit: u32) -> Vec<String> {
        self.0.iter().take(limit as usize).cloned().collect()
    }
}

impl Heartbeats {
    pub(super) fn put(&mut self, process: &str, payload: &str, now: Millis) {
        self.0.retain(|_, (at, _)| is_retained(*at, now));
        self.0.insert(process.to_owned(), (now, payload.to_owned()));
    }

    pub(super) fn read(&self, now: Millis) -> Vec<HeartbeatRecord> {
        let retained = self.0.iter().filter(|(_, (at, _))| is_retained(*at, now));
        let record = |(process, (at, payload)): (&String, &(Millis, String))| HeartbeatRecord {
            process: process.clone(),
            payload: payload.clone(),
            at: *at,
        };
        retained.map(record).collect()
    }
}

fn is_retained(at: Millis, now: Millis) -> bool {
    at >= now.saturating_sub(HEARTBEAT_RETENTION_MS)
}
