use std::collections::BTreeMap;

use async_trait::async_trait;
use daegi_domain::{AccessEvent, AccessRecord, AccessRule, Millis, RuleId};

use super::scripts::scripts;
use super::{RedisStore, keys};
use crate::limits::{MAX_ACCESS_EVENTS, MAX_ACCESS_RULES};
use crate::types::{AccessChange, AccessLog, AccessOutcome, AccessRules};
use crate::{AccessStore, Error, Result};

/// Rules or events that one call reads, so that it blocks Redis for less than a millisecond.
const PAGE: u32 = 500;

/// The argument that keeps the contact URL.
const KEEP: &str = "-";

#[async_trait]
impl AccessStore for RedisStore {
    async fn access_revision(&self) -> Result<u64> {
        let mut read = ::redis::cmd("HGET");
        read.arg(keys::access_settings()).arg("revision");
        Ok(self.command::<Option<u64>>(&read).await?.unwrap_or(0))
    }

    async fn access_rules(&self) -> Result<AccessRules> {
        let mut read = ::redis::cmd("HMGET");
        read.arg(keys::access_settings()).arg("revision").arg("contactUrl");
        let (revision, contact_url): (Option<u64>, Option<String>) = self.command(&read).await?;
        let (stored, mut unreadable) = (self.scan_access_rules().await?, 0);
        let mut rules: BTreeMap<RuleId, AccessRule> = BTreeMap::new();
        for text in stored.values() {
            match read_rule(text) {
                Some(rule) => {
                    rules.insert(rule.id(), rule);
                }
                None => unreadable += 1,
            }
        }
        Ok(AccessRules {
            revision: revision.unwrap_or(0),
            contact_url: contact_url.filter(|url| !url.is_empty()),
            rules: rules.into_values().collect(),
            unreadable,
        })
    }

    async fn change_access(&self, change: &AccessChange, now: Millis) -> Result<AccessOutcome> {
        let mut script = scripts().change_access.invocation();
        script.key(keys::access_rules()).key(keys::access_settings());
        script.key(keys::access_log(AccessLog::Changes));
        let contact_url = match &change.contact_url {
            None => KEEP,
            Some(url) => url.as_deref().unwrap_or_default(),
        };
        script.arg(now).arg(MAX_ACCESS_RULES).arg(MAX_ACCESS_EVENTS).arg(contact_url);
        script.arg(change.remove.len());
        for (id, event) in &change.remove {
            script.arg(id.as_str()).arg(serde_json::to_string(event).map_err(unencodable)?);
        }
        for (rule, event) in &change.put {
            script
                .arg(rule.id().as_str())
                .arg(serde_json::to_string(&rule.record()).map_err(unencodable)?)
                .arg(serde_json::to_string(event).map_err(unencodable)?);
        }
        let (is_changed, revision, added, replaced, removed): (u8, u64, u32, u32, u32) =
            self.run(script).await?;
        Ok(match is_changed {
            0 => AccessOutcome::Full,
            _ => AccessOutcome::Changed { revision, added, replaced, removed },
        })
    }

    async fn append_access_events(&self, log: AccessLog, events: &[AccessEvent]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let mut script = scripts().append_access_events.invocation();
        script.key(keys::access_log(log)).arg(MAX_ACCESS_EVENTS);
        for event in events {
            script.arg(serde_json::to_string(event).map_err(unencodable)?);
        }
        self.run(script).await
    }

    async fn access_events(&self, log: AccessLog, limit: u32) -> Result<Vec<AccessEvent>> {
        let (limit, mut events) = (limit.min(MAX_ACCESS_EVENTS), Vec::new());
        for from in (0..limit).step_by(PAGE as usize) {
            let last = (from + PAGE).min(limit) - 1;
            let mut read = ::redis::cmd("LRANGE");
            read.arg(keys::access_log(log)).arg(from).arg(last);
            let texts: Vec<String> = self.command(&read).await?;
            let is_last = texts.len() < (last + 1 - from) as usize;
            // An event that a newer version wrote is left out.
            events.extend(texts.iter().filter_map(|text| serde_json::from_str(text).ok()));
            if is_last {
                break;
            }
        }
        Ok(events)
    }
}

impl RedisStore {
    /// Reads all rules by id, page by page. Every rule that exists during all of the calls is returned.
    async fn scan_access_rules(&self) -> Result<BTreeMap<String, String>> {
        let (mut cursor, mut rules) = (0_u64, BTreeMap::new());
        loop {
            let mut scan = ::redis::cmd("HSCAN");
            scan.arg(keys::access_rules()).arg(cursor).arg("COUNT").arg(PAGE);
            let (next, page): (u64, Vec<(String, String)>) = self.command(&scan).await?;
            rules.extend(page);
            cursor = next;
            if cursor == 0 {
                return Ok(rules);
            }
        }
    }
}

fn read_rule(text: &str) -> Option<AccessRule> {
    serde_json::from_str::<AccessRecord>(text).ok()?.try_into().ok()
}

/// Texts and numbers can always be encoded, so that this does not happen.
fn unencodable(error: serde_json::Error) -> Error {
    Error::corrupt(error.to_string())
}
