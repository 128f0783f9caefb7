//! Keeps the block and allow list: applies the file of `DAEGI_BLOCKLIST`, removes expired rules, and restores the list if the
//! store lost it. Only the leader does this, once per second.
//!
//! The file alone owns its rules: a rule that disappears from the file disappears from the list. While the file is missing or
//! invalid, its last rules stay in force, because a failed deployment must not unblock anyone.

mod file;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::metrics::gauge;
use daegi_domain::{AccessEvent, AccessEventKind, AccessRule, RuleId, RuleOrigin};
use daegi_runtime::Clock;
use daegi_runtime::outage::OutageLog;
use daegi_store::{AccessChange, AccessOutcome, Error, Result, SharedStore};
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

pub use self::file::{BlocklistError, BlocklistFile};
use crate::admin::audit_text;
use crate::{Leadership, metrics};

/// How often the file and the list are checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// Timeout of reading or changing the whole list.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Rules that one store call changes.
const BATCH: usize = 200;

/// Rules by id.
type Rules = BTreeMap<RuleId, AccessRule>;

/// The work of the leader on the list.
#[derive(Debug)]
pub struct AccessKeeper {
    store: SharedStore,
    clock: Clock,
    leadership: Arc<Leadership>,
    file: Option<BlocklistFile>,
    /// The rules of the file as they were read last.
    from_file: Option<Rules>,
    /// The list as it was read last, with its revision.
    known: Option<(u64, Rules)>,
}

/// A step to make the list what it should be.
#[derive(Debug, Default)]
struct Plan {
    remove: Vec<(RuleId, AccessEvent)>,
    put: Vec<(AccessRule, AccessEvent)>,
    expired: usize,
    restored: usize,
    from_file: usize,
    not_in_file: usize,
}

impl AccessKeeper {
    /// A keeper with this file, if there is one.
    #[must_use]
    pub fn new(
        store: SharedStore,
        clock: Clock,
        leadership: Arc<Leadership>,
        file: Option<PathBuf>,
    ) -> Self {
        gauge!(metrics::BLOCKLIST_INVALID).set(0);
        let file = file.map(BlocklistFile::new);
        Self { store, clock, leadership, file, from_file: None, known: None }
    }

    /// Keeps the list while this replica leads. Never returns.
    pub async fn run(mut self) {
        let mut ticks = interval(INTERVAL);
        let (mut outage, mut file_outage) =
            (OutageLog::new("access list"), OutageLog::new("block list file"));
        loop {
            ticks.tick().await;
            if self.leadership.status().term.is_none() {
                continue;
            }
            match self.read_file() {
                Ok(()) => file_outage.recovered(),
                Err(error) => {
                    file_outage.failed(&error);
                }
            }
            match self.keep().await {
                Ok(()) => outage.recovered(),
                Err(error) => {
                    outage.failed(&error);
                }
            }
        }
    }

    /// Reads the file if it changed.
    ///
    /// # Errors
    /// If it cannot be read or used; the rules of the last valid file stay.
    pub fn read_file(&mut self) -> std::result::Result<(), BlocklistError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let read = file.read_if_changed(self.clock.now_ms());
        gauge!(metrics::BLOCKLIST_INVALID).set(u32::from(read.is_err()));
        if let Some(rules) = read? {
            self.from_file = Some(rules.into_iter().map(|rule| (rule.id(), rule)).collect());
        }
        Ok(())
    }

    /// Makes the list what it should be.
    ///
    /// # Errors
    /// If the store is unavailable, or the list is full.
    pub async fn keep(&mut self) -> Result<()> {
        let revision = within(self.store.access_revision()).await?;
        let now = self.clock.now_ms();
        let is_unchanged = self
            .known
            .as_ref()
            .is_some_and(|(known, rules)| *known == revision && self.plan(rules, now).is_empty());
        if is_unchanged {
            return Ok(());
        }
        let read = within(self.store.access_rules()).await?;
        let mut rules: Rules = read.rules.into_iter().map(|rule| (rule.id(), rule)).collect();
        let mut plan = self.plan(&rules, now);
        if let Some((known, lost)) = self.known.as_ref().filter(|(known, _)| read.revision < *known)
        {
            let (component, stored) = ("access list", read.revision);
            tracing::warn!(component, known, stored, "store lost the block list, restoring it");
            plan.restore(&rules, lost, *known, now);
        }
        let applied = plan.apply(&self.store, now).await;
        plan.update(&mut rules);
        match applied {
            Ok(Some(revision)) => {
                self.known = Some((revision, rules));
                let replica = self.leadership.replica();
                let text =
                    audit_text(replica, "keep access rules", (Value::Null, plan.summary()), now);
                within(self.store.append_audit(&text)).await
            }
            Ok(None) => {
                self.known = Some((read.revision, rules));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns what to change so that expired rules disappear and the rules of the file are in the list.
    fn plan(&self, rules: &Rules, now: u64) -> Plan {
        let mut plan = Plan::default();
        let in_file = self.from_file.as_ref();
        for (id, rule) in rules {
            let is_kept = rule.origin == RuleOrigin::Api
                || in_file.is_none_or(|in_file| in_file.contains_key(id));
            if !rule.is_in_force(now) {
                plan.expired += 1;
                plan.remove(AccessEventKind::RuleExpired, rule, now);
            } else if !is_kept {
                plan.not_in_file += 1;
                plan.remove(AccessEventKind::RuleRemoved, rule, now);
            }
        }
        let missing = in_file.into_iter().flatten().filter(|(id, rule)| {
            rule.is_in_force(now) && rules.get(*id).is_none_or(|known| !is_same(known, rule))
        });
        for (_, rule) in missing {
            plan.from_file += 1;
            plan.put(AccessEventKind::RuleAdded, rule.clone(), now);
        }
        plan
    }
}

/// Returns whether two rules differ in nothing but when they were made.
fn is_same(known: &AccessRule, rule: &AccessRule) -> bool {
    AccessRule { created_at: known.created_at, ..rule.clone() } == *known
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.put.is_empty()
    }

    fn remove(&mut self, kind: AccessEventKind, rule: &AccessRule, now: u64) {
        self.remove.push((rule.id(), AccessEvent::of_change(kind, rule, None, now)));
    }

    /// Puts back the rules of operators that the store lost, and removes again those whose removal it lost.
    fn restore(&mut self, stored: &Rules, lost: &Rules, known: u64, now: u64) {
        let is_api = |rule: &AccessRule| rule.origin == RuleOrigin::Api && rule.is_in_force(now);
        for (id, rule) in lost.iter().filter(|(_, rule)| is_api(rule)) {
            if stored.get(id) != Some(rule) {
                self.restored += 1;
                self.put(AccessEventKind::RuleAdded, rule.clone(), now);
            }
        }
        // A rule that was added after the loss is newer than the last change that this replica knows.
        let is_old = |rule: &AccessRule| is_api(rule) && rule.created_at <= known;
        for (_, rule) in stored.iter().filter(|(id, rule)| is_old(rule) && !lost.contains_key(*id))
        {
            self.restored += 1;
            self.remove(AccessEventKind::RuleRemoved, rule, now);
        }
    }

    fn put(&mut self, kind: AccessEventKind, rule: AccessRule, now: u64) {
        let event = AccessEvent::of_change(kind, &rule, None, now);
        self.put.push((rule, event));
    }

    /// Changes the list in several calls, removals first. Returns the last revision, or `None` if nothing is to change.
    async fn apply(&self, store: &SharedStore, now: u64) -> Result<Option<u64>> {
        let removals = self
            .remove
            .chunks(BATCH)
            .map(|remove| AccessChange { remove: remove.to_vec(), ..AccessChange::default() });
        let additions = self
            .put
            .chunks(BATCH)
            .map(|put| AccessChange { put: put.to_vec(), ..AccessChange::default() });
        let mut last = None;
        for change in removals.chain(additions) {
            match within(store.change_access(&change, now)).await? {
                AccessOutcome::Changed { revision, .. } => last = Some(revision),
                AccessOutcome::Full => {
                    let full = "the block list is full, remove rules or shorten its file";
                    return Err(Error::Unavailable(full.into()));
                }
            }
        }
        Ok(last)
    }

    fn update(&self, rules: &mut Rules) {
        self.remove.iter().for_each(|(id, _)| {
            rules.remove(id);
        });
        rules.extend(self.put.iter().map(|(rule, _)| (rule.id(), rule.clone())));
    }

    /// Returns what the audit log records.
    fn summary(&self) -> Value {
        let counts = [
            ("expired", self.expired),
            ("restored", self.restored),
            ("addedFromFile", self.from_file),
            ("removedWithFile", self.not_in_file),
        ];
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        Value::Object(counts.map(|(name, count)| (name.to_owned(), json!(count))).collect())
    }
}

async fn within<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    let late = || Error::Unavailable("no reply in time".into());
    timeout(STORE_TIMEOUT, call).await.unwrap_or_else(|_| Err(late()))
}
