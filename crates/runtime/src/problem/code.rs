//! All error codes of the HTTP contract, with status and title.

use std::fmt;

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a problem. Clients branch on it, so a code is never renamed or reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The request is malformed or violates a rule.
    InvalidRequest,
    /// The ticket token is malformed or forged.
    InvalidToken,
    /// A join needs a signed identity, and the one sent proves no user.
    InvalidIdentity,
    /// The admin token is missing or wrong.
    Unauthorized,
    /// The role or the items of the operator do not permit the call.
    Forbidden,
    /// The token belongs to another item or another user.
    TokenMismatch,
    /// This user may not join.
    Blocked,
    /// The join needs the solution of a challenge.
    ChallengeRequired,
    /// The invitation code is malformed, of another item, expired or used up.
    InvalidCode,
    /// There is no such item.
    ItemNotFound,
    /// The item's line has no draw.
    NoDraw,
    /// There is no such route.
    NotFound,
    /// The route exists, but not with this method.
    MethodNotAllowed,
    /// The request took too long to arrive.
    RequestTimeout,
    /// The item has no stock.
    SoldOut,
    /// The line is disabled.
    QueueDisabled,
    /// The lobby is not open yet.
    NotOpenYet,
    /// The line has closed.
    LineClosed,
    /// The request contradicts stored data.
    Conflict,
    /// The line was restarted after this token was issued.
    LineRestarted,
    /// The body is too large.
    PayloadTooLarge,
    /// The URI is too long.
    UriTooLong,
    /// The content type of the body is not JSON.
    UnsupportedMediaType,
    /// The user did something more often, or on more connections, than allowed.
    RateLimited,
    /// The line or the whole store has as many waiting tickets as allowed.
    LineFull,
    /// The headers are too large in total.
    HeadersTooLarge,
    /// A bug in daegi.
    Internal,
    /// A temporary failure: the store or the leader is unavailable, or the load is too high.
    Unavailable,
    /// The store has little memory left: joins are refused, existing tickets are served.
    StoreFull,
}

/// Status, name on the wire and title of a code.
type Facts = (StatusCode, &'static str, &'static str);

impl Code {
    /// All codes, for documentation.
    pub const ALL: [Self; 29] = [
        Self::InvalidRequest,
        Self::InvalidToken,
        Self::InvalidIdentity,
        Self::Unauthorized,
        Self::Forbidden,
        Self::TokenMismatch,
        Self::Blocked,
        Self::ChallengeRequired,
        Self::InvalidCode,
        Self::ItemNotFound,
        Self::NoDraw,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::SoldOut,
        Self::QueueDisabled,
        Self::NotOpenYet,
        Self::LineClosed,
        Self::Conflict,
        Self::LineRestarted,
        Self::PayloadTooLarge,
        Self::UriTooLong,
        Self::UnsupportedMediaType,
        Self::RateLimited,
        Self::LineFull,
        Self::HeadersTooLarge,
        Self::Internal,
        Self::Unavailable,
        Self::StoreFull,
    ];

    #[rustfmt::skip]
    const fn facts(self) -> Facts {
        use StatusCode as S;
        match self {
            Self::InvalidRequest => (S::BAD_REQUEST, "INVALID_REQUEST", "Invalid request"),
            Self::InvalidToken => (S::UNAUTHORIZED, "INVALID_TOKEN", "Invalid token"),
            Self::InvalidIdentity => (S::UNAUTHORIZED, "INVALID_IDENTITY", "Invalid identity"),
            Self::Unauthorized => (S::UNAUTHORIZED, "UNAUTHORIZED", "Admin token required"),
            Self::Forbidden => (S::FORBIDDEN, "FORBIDDEN", "Not permitted"),
            Self::TokenMismatch => (S::FORBIDDEN, "TOKEN_MISMATCH", "Token of another item or person"),
            Self::Blocked => (S::FORBIDDEN, "BLOCKED", "Blocked"),
            Self::ChallengeRequired => (S::FORBIDDEN, "CHALLENGE_REQUIRED", "Challenge required"),
            Self::InvalidCode => (S::FORBIDDEN, "INVALID_CODE", "Invalid invitation code"),
            Self::ItemNotFound => (S::NOT_FOUND, "ITEM_NOT_FOUND", "Item not found"),
            Self::NoDraw => (S::NOT_FOUND, "NO_DRAW", "No draw"),
            Self::NotFound => (S::NOT_FOUND, "NOT_FOUND", "Route not found"),
            Self::MethodNotAllowed => (S::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", "Method not allowed"),
            Self::RequestTimeout => (S::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", "Request took too long"),
            Self::SoldOut => (S::CONFLICT, "SOLD_OUT", "Sold out"),
            Self::QueueDisabled => (S::CONFLICT, "QUEUE_DISABLED", "Waiting queue disabled"),
            Self::NotOpenYet => (S::CONFLICT, "NOT_OPEN_YET", "Not open yet"),
            Self::LineClosed => (S::CONFLICT, "LINE_CLOSED", "Line closed"),
            Self::Conflict => (S::CONFLICT, "CONFLICT", "Conflict"),
            Self::LineRestarted => (S::GONE, "LINE_RESTARTED", "Line restarted"),
            Self::PayloadTooLarge => (S::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", "Body too large"),
            Self::UriTooLong => (S::URI_TOO_LONG, "URI_TOO_LONG", "Address too long"),
            Self::UnsupportedMediaType => (S::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", "JSON expected"),
            Self::RateLimited => (S::TOO_MANY_REQUESTS, "RATE_LIMITED", "Limit exceeded"),
            Self::LineFull => (S::TOO_MANY_REQUESTS, "LINE_FULL", "Line full"),
            Self::HeadersTooLarge => (S::REQUEST_HEADER_FIELDS_TOO_LARGE, "HEADERS_TOO_LARGE", "Headers too large"),
            Self::Internal => (S::INTERNAL_SERVER_ERROR, "INTERNAL", "Internal error"),
            Self::Unavailable => (S::SERVICE_UNAVAILABLE, "UNAVAILABLE", "Temporarily unavailable"),
            Self::StoreFull => (S::SERVICE_UNAVAILABLE, "STORE_FULL", "Waiting room full"),
        }
    }

    /// Returns the HTTP status.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.facts().0
    }

    /// Returns the name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.facts().1
    }

    /// Returns the title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.facts().2
    }

    /// Returns whether the same request may succeed later.
    pub(super) const fn is_worth_retrying(self) -> bool {
        matches!(self, Self::RateLimited | Self::LineFull | Self::Unavailable | Self::StoreFull)
    }

    /// Returns the `WWW-Authenticate` header, which RFC 9110 requires for every 401.
    pub(super) const fn challenge(self) -> Option<&'static str> {
        match self {
            Self::Unauthorized => Some("Bearer"),
            Self::InvalidToken | Self::InvalidIdentity => Some(r#"Bearer error="invalid_token""#),
            _ => None,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_name_is_the_same_in_json_and_in_text() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn all_lists_every_code_once() {
        let schema = serde_json::to_value(schemars::schema_for!(Code)).unwrap();
        let variants = schema["oneOf"].as_array().unwrap();
        assert_eq!(variants.len(), Code::ALL.len());
        let distinct: std::collections::HashSet<_> = Code::ALL.iter().collect();
        assert_eq!(distinct.len(), Code::ALL.len());
    }
}
