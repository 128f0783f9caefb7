//! The policy of one line.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::branding::is_web_address;
use crate::{
    Branding, BrandingError, ChallengePolicy, LaneError, LanePolicy, Opening, OpeningError,
    PaceError, PacePolicy, lane,
};

/// The policy of one line. Missing fields take their defaults; unknown fields are rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("not" = {
    "properties": { "mode": { "const": "auto" }, "tokensPerTick": { "const": 0 } },
    "required": ["mode", "tokensPerTick"],
}))]
pub struct Policy {
    /// Whether joins are admitted directly while no ticket waits.
    pub mode: Mode,
    /// How the rate is chosen. An adaptive one takes the place of the global `tokenCountToMove`.
    pub pace: PacePolicy,
    /// Admissions per tick; null takes the global `tokenCountToMove`. With an adaptive pace, the most that a tick
    /// admits; null means no limit.
    #[schemars(range(max = 1_000_000))]
    pub tokens_per_tick: Option<u32>,
    /// Maximum number of entries at a time; null means no limit.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_active: Option<u32>,
    /// Maximum number of waiting tickets, including those that missed their turn; null takes the limit of
    /// the whole store (`--max-waiting`).
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_waiting: Option<u32>,
    /// Whether the stock limits the entries.
    pub admit_up_to_stock: bool,
    /// How long an entry lasts, in seconds.
    #[schemars(range(min = 1, max = 86_400))]
    pub pass_ttl_seconds: u32,
    /// A ticket whose user was not seen for this many seconds misses its turn; 0 turns this off.
    #[schemars(schema_with = "grace_schema")]
    pub grace_seconds: u32,
    /// How long a ticket that missed its turn may return to the front, in seconds.
    #[schemars(range(max = 1_800))]
    pub missed_keep_seconds: u32,
    /// What a repeated join does to a waiting ticket.
    pub on_rejoin: OnRejoin,
    /// Where passes are checked.
    pub guard: Guard,
    /// Whether a user without a ticket solves a challenge to join.
    pub challenge: ChallengePolicy,
    /// Where the waiting page sends an admitted user; `{pass}` and `{token}` are filled in.
    #[schemars(length(max = 2048), extend("pattern" = ENTRY_URL_PATTERN))]
    pub entry_url: Option<String>,
    /// When the line opens and closes; null for a line that is open from the beginning.
    pub opening: Option<Opening>,
    /// The lanes besides the standard one, at most 8. A user enters one with an invitation code.
    #[schemars(length(max = 8))]
    pub lanes: Vec<LanePolicy>,
    /// The branding of the waiting page.
    pub page: Branding,
}

/// When a join queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Every join queues.
    #[default]
    Always,
    /// Joins are admitted directly while no ticket waits and capacity and quota are left.
    Auto,
}

/// What a repeated join does to a waiting ticket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnRejoin {
    /// The ticket stays as it is.
    #[default]
    Keep,
    /// The ticket ends, and a new one is issued at the end of the line.
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
    /// Guards call daegi, which knows whether the entry has ended. The slot is free immediately.
    Online,
}

/// Why a policy is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A value outside its range.
    #[error("{field} is {value}, allowed are {allowed}")]
    Range {
        /// The field as it is written in JSON.
        field: &'static str,
        /// The given value.
        value: u32,
        /// The permitted range.
        allowed: &'static str,
    },
    /// `auto` admits directly, a quota of 0 admits no ticket.
    #[error("mode auto contradicts tokensPerTick 0: pause the line instead")]
    AutoWithoutRate,
    /// An entry URL that is not allowed.
    #[error("entryUrl must be an absolute http(s) address or a path that begins with one slash")]
    EntryUrl,
    /// An unknown placeholder.
    #[error("entryUrl may only contain the placeholders {{pass}} and {{token}}")]
    EntryUrlPlaceholder,
    /// A URL that is too long.
    #[error("entryUrl has more than 2048 characters")]
    EntryUrlLength,
    /// Invalid branding.
    #[error(transparent)]
    Branding(#[from] BrandingError),
    /// An invalid opening.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// Invalid lanes.
    #[error(transparent)]
    Lanes(#[from] LaneError),
    /// An invalid pace.
    #[error(transparent)]
    Pace(#[from] PaceError),
}

/// What [`Policy::check`] accepts as `entryUrl`, as a regular expression.
const ENTRY_URL_PATTERN: &str = r"^(https?://[^/{}?\s\x00-\x1f\x7f-\x9f]|/(?![/\\]))([^\s{}\x00-\x1f\x7f-\x9f]|\{pass\}|\{token\})*$";

fn grace_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "const": 0 }, { "type": "integer", "minimum": 10, "maximum": 1800 }] })
}

impl Policy {
    /// Chooses the round of the opening's beacon if it has none, see [`Opening::with_beacon_round`].
    #[must_use]
    pub fn with_beacon_round(self) -> Self {
        Self { opening: self.opening.map(Opening::with_beacon_round), ..self }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Always,
            pace: PacePolicy::Fixed,
            tokens_per_tick: None,
            max_active: None,
            max_waiting: None,
            admit_up_to_stock: true,
            pass_ttl_seconds: 600,
            grace_seconds: 60,
            missed_keep_seconds: 300,
            on_rejoin: OnRejoin::Keep,
            guard: Guard::Offline,
            challenge: ChallengePolicy::Off,
            entry_url: None,
            opening: None,
            lanes: Vec::new(),
            page: Branding::default(),
        }
    }
}

impl Policy {
    /// Returns how long the user of a waiting ticket may be absent: as long as one who misses the turn at the
    /// front. `None` if liveness is off.
    pub fn absence_limit_seconds(&self) -> Option<u32> {
        (self.grace_seconds > 0).then_some(self.grace_seconds + self.missed_keep_seconds)
    }

    /// Returns the URL to which a user with this pass and token is redirected. Both contain no characters that
    /// need escaping in a URL except `@ : +` of user ids, which are escaped here.
    pub fn entry_url(&self, pass: &str, token: &str) -> Option<String> {
        let url = self.entry_url.as_ref()?;
        let token = token.replace('@', "%40").replace(':', "%3A").replace('+', "%2B");
        Some(url.replace("{pass}", pass).replace("{token}", &token))
    }

    /// Checks ranges and contradictions.
    pub fn check(&self) -> Result<(), PolicyError> {
        within("tokensPerTick", self.tokens_per_tick, 0, 1_000_000, "null or 0 to 1000000")?;
        within("maxActive", self.max_active, 1, 1_000_000_000, "null or 1 to 1000000000")?;
        within("maxWaiting", self.max_waiting, 1, 1_000_000_000, "null or 1 to 1000000000")?;
        within("passTtlSeconds", Some(self.pass_ttl_seconds), 1, 86_400, "1 to 86400")?;
        // Pages poll every half grace period, so that a shorter one would drop users who poll in time.
        let grace = Some(self.grace_seconds).filter(|seconds| *seconds != 0);
        within("graceSeconds", grace, 10, 1800, "0 or 10 to 1800")?;
        within("missedKeepSeconds", Some(self.missed_keep_seconds), 0, 1800, "0 to 1800")?;
        if self.mode == Mode::Auto && self.tokens_per_tick == Some(0) {
            return Err(PolicyError::AutoWithoutRate);
        }
        self.pace.check()?;
        self.page.check()?;
        self.opening.as_ref().map_or(Ok(()), Opening::check)?;
        lane::check(&self.lanes)?;
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
    if !is_web_address(url) {
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
            r#"{"challenge":"hard"}"#,
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
