use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daegi_domain::{AccessEvent, AccessEventKind, AccessRule, ItemId, Millis, RuleId, UserId};
use daegi_store::{AccessLog, AccessStore};
use metrics::counter;

use crate::error::Result;
use crate::lines::TtlCache;
use crate::metrics::BLOCKED_UNRECORDED;
use crate::timeouts::with_store_timeout;

/// Events that wait to be written; the next ones are counted and lost.
const MAX_WAITING: usize = 10_000;
/// Events per store call.
const BATCH: usize = 200;
/// Refused joins that one pod records per second, because a client can invent user ids.
const JOINS_PER_WRITE: usize = 20;
/// How long the refused joins of one user because of one rule count as one event.
const REPEAT_AFTER: Duration = Duration::from_secs(3600);
/// Refused joins that are remembered for that.
const REMEMBERED: usize = 8 * 1024;

/// Events of blocked users until they are written.
pub(super) struct EventLog {
    waiting: Mutex<Waiting>,
    recent_joins: TtlCache<(RuleId, ItemId, UserId), ()>,
}

#[derive(Default)]
struct Waiting {
    tickets: VecDeque<AccessEvent>,
    joins: VecDeque<AccessEvent>,
}

impl EventLog {
    pub(super) fn new() -> Self {
        let recent_joins = TtlCache::new(REPEAT_AFTER, REMEMBERED);
        Self { waiting: Mutex::default(), recent_joins }
    }

    pub(super) fn push(
        &self,
        kind: AccessEventKind,
        rule: &AccessRule,
        user: &UserId,
        item: &ItemId,
        now: Millis,
    ) {
        let is_join = kind == AccessEventKind::JoinRefused;
        if is_join {
            let key = (rule.id(), item.clone(), user.clone());
            if self.recent_joins.get(&key).is_some() {
                return;
            }
            self.recent_joins.insert(key, ());
        }
        let mut waiting = self.lock();
        let (events, max) = match is_join {
            true => (&mut waiting.joins, JOINS_PER_WRITE),
            false => (&mut waiting.tickets, MAX_WAITING),
        };
        if events.len() < max {
            events.push_back(AccessEvent::of_user(kind, rule, user.clone(), item.clone(), now));
        } else {
            counter!(BLOCKED_UNRECORDED).increment(1);
        }
    }

    /// Writes all waiting events. Those of a failed call wait further.
    pub(super) async fn write(&self, store: &dyn AccessStore) -> Result<()> {
        for log in [AccessLog::Tickets, AccessLog::Joins] {
            loop {
                let batch: Vec<_> = self.queue(log, |events| {
                    let count = events.len().min(BATCH);
                    events.drain(..count).collect()
                });
                if batch.is_empty() {
                    break;
                }
                let written = store.append_access_events(log, &batch);
                if let Err(error) = with_store_timeout("append_access_events", written).await {
                    self.queue(log, |events| {
                        batch.into_iter().rev().for_each(|event| events.push_front(event))
                    });
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn queue<T>(&self, log: AccessLog, step: impl FnOnce(&mut VecDeque<AccessEvent>) -> T) -> T {
        let mut waiting = self.lock();
        match log {
            AccessLog::Joins => step(&mut waiting.joins),
            AccessLog::Tickets | AccessLog::Changes => step(&mut waiting.tickets),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // A poisoned lock is usable, because no call panics between two related changes.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
