//! Rules that block requests, or exempt them from challenges and limits.
//!
//! A rule names a user, a network or a part of a user agent, and may be limited to one item. [`AccessList`] finds the
//! rules of a request. The id of a rule is a hash of what it matches, so that the same rule replaces itself.
//! See `docs/adr/026-block-and-allow-lists.md`.

mod list;
mod network;

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use self::list::{AccessList, Decision, Requester};
pub use self::network::Network;
use crate::{ItemId, Millis, UserId, parse_rfc3339, rfc3339};

/// What all browsers send at the beginning of their user agent. A pattern that occurs in it would match nearly every user.
const COMMON_AGENT: &str =
    "mozilla/5.0 (khtml, like gecko) applewebkit/537.36 chrome/ safari/537.36";

/// A rule of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRule {
    /// Whether the rule blocks or allows.
    pub kind: AccessKind,
    /// What it matches.
    pub subject: AccessSubject,
    /// The only item it applies to; `None` for all.
    pub item: Option<ItemId>,
    /// Why the rule exists, for operators.
    pub reason: RuleText,
    /// Why the rule exists, as blocked users read it.
    pub public_reason: Option<RuleText>,
    /// When it ends to apply; `None` if it does not.
    pub expires_at: Option<Millis>,
    /// Who made it, as far as that is known.
    pub author: Option<String>,
    /// When it was made.
    pub created_at: Millis,
    /// Where it comes from.
    pub origin: RuleOrigin,
}

/// Whether a rule blocks or allows. An allow rule wins over every block rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    /// Requests are refused with `BLOCKED`, and a ticket ends.
    Block,
    /// Requests are exempt from challenges and limits.
    Allow,
}

/// What a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AccessSubject {
    /// A user.
    User(UserId),
    /// The addresses of a network.
    Network(Network),
    /// User agents that contain a text.
    UserAgent(AgentPattern),
}

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleOrigin {
    /// An operator added it with the admin API or the console.
    Api,
    /// It is in the file of `DAEGI_BLOCKLIST`, which alone changes it.
    File,
}

/// The id of a rule: 16 hexadecimal digits. Users quote it when they complain.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RuleId(String);

/// A text that occurs in a user agent, compared without regard to the case of ASCII letters: 4 to 128 printable ASCII
/// characters, none of which is a wildcard.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentPattern(String);

/// A text of a rule: 1 to 200 characters without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RuleText(String);

/// Why a rule is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// None or several of the three.
    #[error("a rule has exactly one of userId, network and userAgent")]
    Subject,
    /// Not an id.
    #[error("the id of a rule has 16 hexadecimal digits")]
    Id,
    /// Not a network.
    #[error(
        "network must be an address or a network in CIDR notation such as 203.0.113.0/24 or 2001:db8::/32"
    )]
    Network,
    /// So large that it is rather a mistake.
    #[error("network has a prefix of {0} bits, at least {1} are needed")]
    LargeNetwork(u8, u8),
    /// Not a pattern.
    #[error(
        "userAgent must be 4 to {max} printable ASCII characters that occur in the user agent; it has no wildcards",
        max = AgentPattern::MAX_LEN
    )]
    Agent,
    /// A pattern that nearly all browsers match.
    #[error("userAgent is a part of what nearly all browsers send: take a longer text")]
    CommonAgent,
    /// Not a text.
    #[error("reason and publicReason have 1 to {max} characters without control characters", max = RuleText::MAX_LEN)]
    Text,
    /// Not a time.
    #[error("expiresAt is invalid: {0}")]
    Expiry(String),
}

/// A rule as an operator or a file names it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "kind": "block", "network": "203.0.113.0/24", "reason": "2,000 joins in a minute",
    "publicReason": "Too many automated requests came from your network.", "expiresAt": "2026-11-21T00:00:00Z",
}))]
pub struct NewAccessRule {
    /// Whether the rule blocks or allows.
    pub kind: AccessKind,
    /// A user. A rule has exactly one of `userId`, `network` and `userAgent`.
    #[serde(default)]
    pub user_id: Option<UserId>,
    /// An address or a network in CIDR notation, at least /8 (IPv4) or /16 (IPv6).
    #[serde(default)]
    pub network: Option<Network>,
    /// A text that occurs in the user agent; upper and lower case are equal.
    #[serde(default)]
    pub user_agent: Option<AgentPattern>,
    /// The only item the rule applies to; all without it.
    #[serde(default)]
    pub item_id: Option<ItemId>,
    /// Why the rule exists, for operators.
    pub reason: RuleText,
    /// Why the rule exists, as blocked users read it.
    #[serde(default)]
    pub public_reason: Option<RuleText>,
    /// When the rule ends, RFC 3339; never without it.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
}

/// A rule as the store, the history and the admin API have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AccessRule")]
#[schemars(example = serde_json::json!({
    "id": "6f1c0a52d0a94be1", "kind": "block", "userId": null, "network": "203.0.113.0/24", "userAgent": null,
    "itemId": null, "reason": "2,000 joins in a minute", "publicReason": null,
    "expiresAt": "2026-11-21T00:00:00.000Z", "author": "kim", "createdAt": "2026-11-20T19:00:00.000Z",
    "origin": "api",
}))]
pub struct AccessRecord {
    /// The id of the rule.
    pub id: RuleId,
    /// Whether the rule blocks or allows.
    pub kind: AccessKind,
    /// The user, if the rule matches one.
    #[serde(default)]
    pub user_id: Option<UserId>,
    /// The network, if the rule matches one.
    #[serde(default)]
    pub network: Option<Network>,
    /// The text, if the rule matches user agents.
    #[serde(default)]
    pub user_agent: Option<AgentPattern>,
    /// The only item the rule applies to; null for all.
    #[serde(default)]
    pub item_id: Option<ItemId>,
    /// Why the rule exists, for operators.
    pub reason: RuleText,
    /// Why the rule exists, as blocked users read it.
    #[serde(default)]
    pub public_reason: Option<RuleText>,
    /// When the rule ends; null for never.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
    /// Who made the rule, as far as that is known.
    #[serde(default)]
    pub author: Option<String>,
    /// When the rule was made.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// Where the rule comes from.
    pub origin: RuleOrigin,
}

/// What happened to a rule, or because of it. One line of the export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccessEvent {
    /// When, RFC 3339.
    pub at: String,
    /// What happened.
    pub event: AccessEventKind,
    /// The user whose request was refused or whose ticket ended; absent for a change of a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<UserId>,
    /// The item of that request or ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
    /// Who changed the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The rule as it was then.
    pub rule: AccessRecord,
}

/// What happened to a rule, or because of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AccessEventKind {
    /// The rule was added, or replaced one with the same id.
    RuleAdded,
    /// The rule was removed.
    RuleRemoved,
    /// The rule was removed after its expiry.
    RuleExpired,
    /// A join was refused.
    JoinRefused,
    /// A ticket or an entry ended.
    TicketEnded,
}

impl AccessRule {
    /// Returns the id: the same for every rule of this kind that matches the same at the same items.
    #[must_use]
    pub fn id(&self) -> RuleId {
        RuleId::new(self.kind, &self.subject, self.item.as_ref())
    }

    /// Returns whether the rule applies at this time.
    #[must_use]
    pub fn is_in_force(&self, now: Millis) -> bool {
        self.expires_at.is_none_or(|expires_at| now < expires_at)
    }

    /// Returns what users read: the public reason, or a general one.
    #[must_use]
    pub fn shown_reason(&self) -> &str {
        self.public_reason.as_ref().map_or("Access to this line is blocked.", RuleText::as_str)
    }

    /// Returns the record of the rule.
    #[must_use]
    pub fn record(&self) -> AccessRecord {
        let (mut user_id, mut network, mut user_agent) = (None, None, None);
        match self.subject.clone() {
            AccessSubject::User(user) => user_id = Some(user),
            AccessSubject::Network(known) => network = Some(known),
            AccessSubject::UserAgent(pattern) => user_agent = Some(pattern),
        }
        AccessRecord {
            id: self.id(),
            kind: self.kind,
            user_id,
            network,
            user_agent,
            item_id: self.item.clone(),
            reason: self.reason.clone(),
            public_reason: self.public_reason.clone(),
            expires_at: self.expires_at.map(rfc3339),
            author: self.author.clone(),
            created_at: rfc3339(self.created_at),
            origin: self.origin,
        }
    }
}

impl TryFrom<AccessRecord> for AccessRule {
    type Error = AccessError;

    fn try_from(record: AccessRecord) -> Result<Self, AccessError> {
        let time = |text: &String| parse_rfc3339(text).map_err(AccessError::Expiry);
        Ok(Self {
            kind: record.kind,
            subject: subject(record.user_id, record.network, record.user_agent)?,
            item: record.item_id,
            reason: record.reason,
            public_reason: record.public_reason,
            expires_at: record.expires_at.as_ref().map(time).transpose()?,
            author: record.author,
            created_at: time(&record.created_at)?,
            origin: record.origin,
        })
    }
}

impl NewAccessRule {
    /// Returns the rule as this author makes it now.
    ///
    /// # Errors
    /// If it has not exactly one subject, or if its expiry is not a time.
    pub fn rule(
        self,
        author: Option<String>,
        origin: RuleOrigin,
        now: Millis,
    ) -> Result<AccessRule, AccessError> {
        let expires_at = self.expires_at.as_deref().map(parse_rfc3339).transpose();
        Ok(AccessRule {
            kind: self.kind,
            subject: subject(self.user_id, self.network, self.user_agent)?,
            item: self.item_id,
            reason: self.reason,
            public_reason: self.public_reason,
            expires_at: expires_at.map_err(AccessError::Expiry)?,
            author,
            created_at: now,
            origin,
        })
    }
}

impl AccessEvent {
    /// The event of a rule that an operator or a file changed.
    #[must_use]
    pub fn of_change(
        event: AccessEventKind,
        rule: &AccessRule,
        operator: Option<String>,
        at: Millis,
    ) -> Self {
        let rule = rule.record();
        Self { at: rfc3339(at), event, user_id: None, item_id: None, operator, rule }
    }

    /// The event of a user whom a rule blocked.
    #[must_use]
    pub fn of_user(
        event: AccessEventKind,
        rule: &AccessRule,
        user: UserId,
        item: ItemId,
        at: Millis,
    ) -> Self {
        let (user_id, item_id) = (Some(user), Some(item));
        Self { at: rfc3339(at), event, user_id, item_id, operator: None, rule: rule.record() }
    }
}

fn subject(
    user: Option<UserId>,
    network: Option<Network>,
    agent: Option<AgentPattern>,
) -> Result<AccessSubject, AccessError> {
    match (user, network, agent) {
        (Some(user), None, None) => Ok(AccessSubject::User(user)),
        (None, Some(network), None) => Ok(AccessSubject::Network(network)),
        (None, None, Some(pattern)) => Ok(AccessSubject::UserAgent(pattern)),
        _ => Err(AccessError::Subject),
    }
}

impl RuleId {
    const DIGITS: usize = 16;

    fn new(kind: AccessKind, subject: &AccessSubject, item: Option<&ItemId>) -> Self {
        let kind = match kind {
            AccessKind::Block => "block",
            AccessKind::Allow => "allow",
        };
        let item = item.map_or("", ItemId::as_str);
        // No part contains a line break.
        let text = format!("{kind}\n{subject}\n{item}");
        let mut id = hex::encode(Sha256::digest(text));
        id.truncate(Self::DIGITS);
        Self(id)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AgentPattern {
    /// The longest pattern.
    pub const MAX_LEN: usize = 128;
    const MIN_LEN: usize = 4;

    /// Returns the pattern in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentPattern {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let text = text.trim();
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if !is_printable || !(Self::MIN_LEN..=Self::MAX_LEN).contains(&text.len()) {
            return Err(AccessError::Agent);
        }
        let pattern = text.to_ascii_lowercase();
        if COMMON_AGENT.contains(&pattern) {
            return Err(AccessError::CommonAgent);
        }
        Ok(Self(pattern))
    }
}

impl RuleText {
    /// The longest text, in characters.
    pub const MAX_LEN: usize = 200;

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RuleText {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let text = text.trim();
        let is_valid = (1..=Self::MAX_LEN).contains(&text.chars().count())
            && !text.chars().any(char::is_control);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(AccessError::Text) }
    }
}

impl FromStr for RuleId {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_hex && text.len() == Self::DIGITS {
            Ok(Self(text.to_owned()))
        } else {
            Err(AccessError::Id)
        }
    }
}

impl fmt::Display for AccessRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            AccessKind::Block => "block",
            AccessKind::Allow => "allow",
        };
        write!(f, "{kind} {}", self.subject)
    }
}

impl fmt::Display for AccessSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(f, "user {user}"),
            Self::Network(network) => write!(f, "network {network}"),
            Self::UserAgent(pattern) => write!(f, "user agent {}", pattern.0),
        }
    }
}

macro_rules! text_type {
    ($name:ident, $schema:expr) => {
        impl TryFrom<String> for $name {
            type Error = AccessError;

            fn try_from(text: String) -> Result<Self, AccessError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

text_type!(RuleId, json_schema!({ "type": "string", "pattern": "^[0-9a-f]{16}$" }));
text_type!(
    AgentPattern,
    json_schema!({ "type": "string", "minLength": 4, "maxLength": Self::MAX_LEN })
);
text_type!(
    RuleText,
    json_schema!({ "type": "string", "minLength": 1, "maxLength": Self::MAX_LEN })
);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: serde_json::Value) -> Result<AccessRule, String> {
        let new: NewAccessRule = serde_json::from_value(json).map_err(|error| error.to_string())?;
        new.rule(Some("kim".into()), RuleOrigin::Api, 7).map_err(|error| error.to_string())
    }

    #[test]
    fn a_rule_survives_its_record_and_the_same_rule_has_the_same_id() {
        for subject in [
            serde_json::json!({ "userId": "lee" }),
            serde_json::json!({ "network": "203.0.113.9/24" }),
            serde_json::json!({ "userAgent": "Python-Requests/2" }),
        ] {
            let mut json = serde_json::json!({
                "kind": "block", "reason": "joins too often", "itemId": "concert",
                "expiresAt": "2026-11-20T19:00:00Z",
            });
            json.as_object_mut().unwrap().extend(subject.as_object().unwrap().clone());
            let rule = parse(json.clone()).unwrap();
            let stored = serde_json::to_string(&rule.record()).unwrap();
            let record: AccessRecord = serde_json::from_str(&stored).unwrap();
            assert_eq!(AccessRule::try_from(record).unwrap(), rule);
            json["reason"] = "another reason".into();
            assert_eq!(parse(json.clone()).unwrap().id(), rule.id());
            json["kind"] = "allow".into();
            assert_ne!(parse(json.clone()).unwrap().id(), rule.id());
            json["kind"] = "block".into();
            json["itemId"] = "drop".into();
            assert_ne!(parse(json).unwrap().id(), rule.id());
        }
        let equal = ["203.0.113.0/24", "203.0.113.77/24"].map(|network| {
            let json = serde_json::json!({ "kind": "block", "network": network, "reason": "a" });
            parse(json).unwrap().id()
        });
        assert_eq!(equal[0], equal[1], "host bits do not matter");
    }

    #[test]
    fn rules_that_are_none_are_refused_with_the_reason() {
        let refused = |json, part: &str| {
            let reason = parse(json).unwrap_err();
            assert!(reason.contains(part), "{reason}");
        };
        let (kind, reason) = ("block", "r");
        refused(serde_json::json!({ "kind": kind, "reason": reason }), "exactly one of");
        refused(
            serde_json::json!({ "kind": kind, "reason": reason, "userId": "a", "network": "10.0.0.1" }),
            "exactly one of",
        );
        refused(
            serde_json::json!({ "kind": kind, "reason": reason, "network": "0.0.0.0/0" }),
            "at least 8",
        );
        for agent in ["abc", "a\u{7}bcd", "콘서트콘서트", &"x".repeat(129)] {
            refused(
                serde_json::json!({ "kind": kind, "reason": reason, "userAgent": agent }),
                "printable ASCII",
            );
        }
        refused(
            serde_json::json!({ "kind": kind, "reason": reason, "userAgent": "Mozilla/5.0" }),
            "nearly all browsers",
        );
        refused(serde_json::json!({ "kind": kind, "reason": " ", "userId": "a" }), "1 to 200");
        refused(
            serde_json::json!({ "kind": kind, "reason": "r", "userId": "a", "expiresAt": "soon" }),
            "expiresAt is invalid",
        );
        refused(serde_json::json!({ "kind": kind, "reason": "r", "user": "a" }), "unknown field");
    }
}
