//! The rules of one line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Look, LookError};

/// How one line treats its people. Missing fields take their defaults; unknown ones are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Policy {
    /// Whether people may pass through while nobody waits.
    pub mode: Mode,
    /// How many are let in per tick; null takes the global `tokenCountToMove`.
    pub tokens_per_tick: Option<u32>,
    /// How many may be inside at once; null is no limit.
    pub max_active: Option<u32>,
    /// How many tickets may wait at once, those who missed their turn included; null takes the
    /// limit of the whole store (`--max-waiting`).
    pub max_waiting: Option<u32>,
    /// Never have more people inside than there is stock.
    pub admit_up_to_stock: bool,
    /// How long an entry lasts.
    pub pass_ttl_seconds: u32,
    /// A person unseen for this long is not let in but put aside; 0 turns it off.
    pub grace_seconds: u32,
    /// How long a person who missed their turn may come back to the front.
    pub missed_keep_seconds: u32,
    /// What joining again does to a place.
    pub on_rejoin: OnRejoin,
    /// Where passes are checked.
    pub guard: Guard,
    /// Where people go when it is their turn; `{pass}` and `{token}` are filled in.
    pub entry_url: Option<String>,
    /// How the waiting page looks.
    pub page: Look,
}

/// Whether everybody queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Everybody queues.
    #[default]
    Always,
    /// People pass through while the line is empty and there is room.
    Auto,
}

/// What joining again does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnRejoin {
    /// The same place.
    #[default]
    Keep,
    /// A new place at the end.
    Requeue,
}

/// Where the passes of a line are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// Guards verify the signature alone, so that a pass is valid until it expires. An entry that its
    /// user gives back occupies its slot until then.
    #[default]
    Offline,
    /// Guards ask daegi, which knows that the entry has ended. The slot is free immediately.
    Online,
}

/// Why a policy makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A value outside its range.
    #[error("{field} is {value}, allowed are {allowed}")]
    Range {
        /// The field as it is written in JSON.
        field: &'static str,
        /// What was given.
        value: u32,
        /// What may be given.
        allowed: &'static str,
    },
    /// `auto` lets people through, a rate of 0 lets nobody in.
    #[error("mode auto contradicts tokensPerTick 0: pause the line instead")]
    AutoWithoutRate,
    /// An address people must not be sent to.
    #[error("entryUrl must be an absolute http(s) address or a path that begins with one slash")]
    EntryUrl,
    /// A placeholder that nothing fills in.
    #[error("entryUrl may only contain the placeholders {{pass}} and {{token}}")]
    EntryUrlPlaceholder,
    /// Too long to be an address.
    #[error("entryUrl has more than 2048 characters")]
    EntryUrlLength,
    /// A page that cannot be shown.
    #[error(transparent)]
    Look(#[from] LookError),
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Always,
            tokens_per_tick: None,
            max_active: None,
            max_waiting: None,
            admit_up_to_stock: true,
            pass_ttl_seconds: 600,
            grace_seconds: 60,
            missed_keep_seconds: 300,
            on_rejoin: OnRejoin::Keep,
            guard: Guard::Offline,
            entry_url: None,
            page: Look::default(),
        }
    }
}

impl Policy {
    /// The longest a person in the middle of the line may go unseen: as long as one who misses
    /// their turn at the front. Null where liveness is off.
    pub fn unseen_limit_seconds(&self) -> Option<u32> {
        (self.grace_seconds > 0).then_some(self.grace_seconds + self.missed_keep_seconds)
    }

    /// Where to send a person with this pass and token. Both are made of characters that need no
    /// escaping in an address but for `@ : +` in user ids, which are escaped here.
    pub fn entry_url(&self, pass: &str, token: &str) -> Option<String> {
        let url = self.entry_url.as_ref()?;
        let token = token.replace('@', "%40").replace(':', "%3A").replace('+', "%2B");
        Some(url.replace("{pass}", pass).replace("{token}", &token))
    }

    /// Refuses values out of range and rules that contradict each other.
    pub fn check(&self) -> Result<(), PolicyError> {
        within("tokensPerTick", self.tokens_per_tick, 0, 1_000_000, "null or 0 to 1000000")?;
        within("maxActive", self.max_active, 1, 1_000_000_000, "null or 1 to 1000000000")?;
        within("maxWaiting", self.max_waiting, 1, 1_000_000_000, "null or 1 to 1000000000")?;
        within("passTtlSeconds", Some(self.pass_ttl_seconds), 1, 86_400, "1 to 86400")?;
        // Pages poll every half grace period, so a shorter one would drop people who behave.
        let grace = Some(self.grace_seconds).filter(|seconds| *seconds != 0);
        within("graceSeconds", grace, 10, 1800, "0 or 10 to 1800")?;
        within("missedKeepSeconds", Some(self.missed_keep_seconds), 0, 1800, "0 to 1800")?;
        if self.mode == Mode::Auto && self.tokens_per_tick == Some(0) {
            return Err(PolicyError::AutoWithoutRate);
        }
        self.page.check()?;
        self.entry_url.as_deref().map_or(Ok(()), check_entry_url)
    }
}

fn within(
    field: &'static str,
    value: Option<u32>,
    min: u32,
    max: u32,
    allowed: &'static str,
) -> Result<(), PolicyError> {
    match value {
        Some(value) if !(min..=max).contains(&value) => {
            Err(PolicyError::Range { field, value, allowed })
        }
        _ => Ok(()),
    }
}

fn check_entry_url(url: &str) -> Result<(), PolicyError> {
    if url.len() > 2048 {
        return Err(PolicyError::EntryUrlLength);
    }
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let absolute = host.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '{', '?']));
    // A second slash or a backslash would make it another host's address.
    let path = url.starts_with('/') && !url[1..].starts_with(['/', '\\']);
    if !(absolute || path) || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(PolicyError::EntryUrl);
    }
    let rest = url.replace("{pass}", "").replace("{token}", "");
    if rest.contains(['{', '}']) { Err(PolicyError::EntryUrlPlaceholder) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str) -> Result<(), String> {
        let policy: Policy = serde_json::from_str(json).map_err(|error| error.to_string())?;
        policy.check().map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_hold_and_unknown_fields_do_not() {
        assert_eq!(check("{}"), Ok(()));
        assert!(check(r#"{"maxActve":1}"#).unwrap_err().contains("maxActve"));
    }

    #[test]
    fn contradictions_and_wild_values_are_refused() {
        for bad in [
            r#"{"mode":"auto","tokensPerTick":0}"#,
            r#"{"maxActive":0}"#,
            r#"{"maxActive":-1}"#,
            r#"{"maxWaiting":0}"#,
            r#"{"tokensPerTick":4294967296}"#,
            r#"{"passTtlSeconds":0}"#,
            r#"{"graceSeconds":3}"#,
            r#"{"missedKeepSeconds":99999}"#,
            r#"{"entryUrl":"javascript:alert(1)"}"#,
            r#"{"entryUrl":"//evil.example/"}"#,
            r#"{"entryUrl":"/\\evil.example/"}"#,
            r#"{"entryUrl":"https://"}"#,
            r#"{"entryUrl":"https://shop.example/{user}"}"#,
            r#"{"mode":"sometimes"}"#,
        ] {
            assert!(check(bad).is_err(), "{bad} must be refused");
        }
    }

    #[test]
    fn the_entry_address_is_filled_in_and_escaped() {
        let policy = Policy {
            entry_url: Some("https://shop.example/buy?p={pass}&t={token}".into()),
            ..Policy::default()
        };
        assert_eq!(policy.check(), Ok(()));
        let url = policy.entry_url("a.b.c", "kim@x+y-item-1").unwrap();
        assert_eq!(url, "https://shop.example/buy?p=a.b.c&t=kim%40x%2By-item-1");
    }
}
