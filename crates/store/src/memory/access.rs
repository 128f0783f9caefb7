use std::collections::{BTreeMap, VecDeque};

use async_trait::async_trait;
use daegi_domain::{AccessEvent, AccessRule, Millis, RuleId};

use super::MemoryStore;
use crate::limits::{MAX_ACCESS_EVENTS, MAX_ACCESS_RULES};
use crate::types::{AccessChange, AccessLog, AccessOutcome, AccessRules};
use crate::{AccessStore, Result};

/// The block and allow list, and its logs.
#[derive(Debug, Clone, Default)]
pub(super) struct AccessState {
    revision: u64,
    contact_url: Option<String>,
    rules: BTreeMap<RuleId, AccessRule>,
    /// Newest event first.
    logs: [VecDeque<AccessEvent>; AccessLog::ALL.len()],
}

impl AccessState {
    fn change(&mut self, change: &AccessChange, now: Millis) -> AccessOutcome {
        let (mut rules, mut events) = (self.rules.clone(), Vec::new());
        let (mut added, mut replaced, mut removed) = (0, 0, 0);
        for (id, event) in &change.remove {
            if rules.remove(id).is_some() {
                removed += 1;
                events.push(event.clone());
            }
        }
        for (rule, event) in &change.put {
            let known = rules.insert(rule.id(), rule.clone()).is_some();
            if known {
                replaced += 1
            } else {
                added += 1
            }
            events.push(event.clone());
        }
        if added > 0 && rules.len() > MAX_ACCESS_RULES as usize {
            return AccessOutcome::Full;
        }
        if added + replaced + removed > 0 || change.contact_url.is_some() {
            self.revision = now.max(self.revision + 1);
            self.rules = rules;
            self.append(AccessLog::Changes, &events);
            if let Some(contact_url) = &change.contact_url {
                self.contact_url = contact_url.clone();
            }
        }
        AccessOutcome::Changed { revision: self.revision, added, replaced, removed }
    }

    fn append(&mut self, log: AccessLog, events: &[AccessEvent]) {
        let log = &mut self.logs[log as usize];
        events.iter().for_each(|event| log.push_front(event.clone()));
        log.truncate(MAX_ACCESS_EVENTS as usize);
    }
}

#[async_trait]
impl AccessStore for MemoryStore {
    async fn access_revision(&self) -> Result<u64> {
        Ok(self.state().access.revision)
    }

    async fn access_rules(&self) -> Result<AccessRules> {
        let state = self.state();
        let AccessState { revision, contact_url, rules, .. } = &state.access;
        let rules = rules.values().cloned().collect();
        Ok(AccessRules {
            revision: *revision,
            contact_url: contact_url.clone(),
            rules,
            unreadable: 0,
        })
    }

    async fn change_access(&self, change: &AccessChange, now: Millis) -> Result<AccessOutcome> {
        Ok(self.state().access.change(change, now))
    }

    async fn append_access_events(&self, log: AccessLog, events: &[AccessEvent]) -> Result<()> {
        self.state().access.append(log, events);
        Ok(())
    }

    async fn access_events(&self, log: AccessLog, limit: u32) -> Result<Vec<AccessEvent>> {
        let state = self.state();
        Ok(state.access.logs[log as usize].iter().take(limit as usize).cloned().collect())
    }
}
