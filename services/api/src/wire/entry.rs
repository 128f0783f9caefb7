use daegi_domain::{EndReason, Millis, UserId, rfc3339};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which entry is verified or completed: exactly one of both.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["token"], "properties": { "token": { "type": "string" }, "pass": { "type": "null" } } },
    { "required": ["pass"], "properties": { "pass": { "type": "string" }, "token": { "type": "null" } } },
]))]
pub(crate) struct TokenOrPass {
    /// A ticket's token.
    #[serde(default)]
    pub(crate) token: Option<String>,
    /// A pass.
    #[serde(default)]
    pub(crate) pass: Option<String>,
}

/// Whether a person may be inside now.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Verdict {
    /// The answer.
    pub(crate) valid: bool,
    /// Who it is, if valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user_id: Option<UserId>,
    /// Until when, as RFC 3339, if valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<String>,
    /// Why not, if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Reason>,
}

/// Why an entry is not good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Reason {
    /// Malformed or forged.
    InvalidToken,
    /// Genuine, but of another item.
    TokenMismatch,
    /// The entry was not used in time.
    Expired,
    /// Not their turn yet.
    Waiting,
    /// Used already.
    Completed,
    /// Given back.
    Left,
    /// Unseen for too long.
    Abandoned,
    /// The person joined again and has another ticket.
    Replaced,
    /// From before the line was restarted.
    LineRestarted,
    /// No such item.
    ItemNotFound,
}

/// What completing did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Completed {
    /// Whether this call ended the entry; false if it was not inside any more.
    pub(crate) released: bool,
}

impl Verdict {
    pub(crate) fn valid(user: UserId, expires_at: Millis) -> Self {
        Self {
            valid: true,
            user_id: Some(user),
            expires_at: Some(rfc3339(expires_at)),
            reason: None,
        }
    }

    pub(crate) fn refused(reason: Reason) -> Self {
        Self { valid: false, user_id: None, expires_at: None, reason: Some(reason) }
    }
}

impl From<EndReason> for Reason {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Expired => Self::Expired,
            EndReason::Completed => Self::Completed,
            EndReason::Left => Self::Left,
            EndReason::Abandoned => Self::Abandoned,
            EndReason::Replaced => Self::Replaced,
        }
    }
}
