//! Error responses: RFC 9457 `application/problem+json`.
//!
//! A service maps its errors to a [`Code`] in one exhaustive match. The code determines status and
//! title, so that the same error looks the same from every service and layer.

mod code;

use std::borrow::Cow;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use code::Code;

/// The content type of every error response.
pub const CONTENT: &str = "application/problem+json";

/// An error response (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{code}: {detail}")]
pub struct Problem {
    /// URI that identifies the kind of problem. It never changes.
    #[serde(rename = "type")]
    pub kind: String,
    /// Short summary of the kind of problem, the same for every occurrence.
    pub title: Cow<'static, str>,
    /// The HTTP status, repeated for clients that store only the body.
    pub status: u16,
    /// Machine-readable kind of problem.
    pub code: Code,
    /// What happened in this request, for a human reader. Contains no secrets and no internal errors.
    pub detail: Cow<'static, str>,
    /// With `NOT_OPEN_YET`: when users can join.
    #[serde(flatten)]
    pub opening: Option<Box<PlannedOpening>>,
    /// With `CHALLENGE_REQUIRED`: what the client solves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<Box<PresentedChallenge>>,
    /// With `BLOCKED`: why, and what the user can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Box<BlockedNotice>>,
    /// Seconds after which the client can retry; also sent as `Retry-After`.
    #[serde(skip)]
    pub retry_after: Option<u32>,
}

/// The times of an opening, RFC 3339; null if they are not planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedOpening {
    /// When the line opens.
    pub opens_at: Option<String>,
    /// When joins are accepted.
    pub lobby_at: Option<String>,
}

/// Why a user is blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockedNotice {
    /// The reason that the operator gives to users.
    pub reason: String,
    /// The id of the rule, which a user quotes in a complaint.
    pub rule: String,
    /// When the rule ends, RFC 3339; null for never.
    pub until: Option<String>,
    /// Where the user can complain; null if the operator has not set it.
    pub contact_url: Option<String>,
}

/// A challenge that a client solves to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PresentedChallenge {
    /// Kind of the challenge.
    pub kind: ChallengeKind,
    /// The signed text of the challenge: 48 hexadecimal digits.
    pub challenge: String,
    /// The zero bits with which the SHA-256 of the challenge and the nonce, as bytes, begins; 0 for a widget.
    pub difficulty: u8,
    /// With the kind `widget`: what the client shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widget: Option<PresentedWidget>,
}

/// The widget of a third party that a user solves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PresentedWidget {
    /// The provider: `turnstile` or `hcaptcha`.
    pub provider: String,
    /// The key with which the client renders the widget.
    pub site_key: String,
    /// The address of the script that renders it.
    pub script: String,
}

/// The kind of a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChallengeKind {
    /// A proof of work.
    Pow,
    /// A widget of a third party.
    Widget,
}

impl Problem {
    /// A problem with this code. Codes that are worth retrying get a `Retry-After` of 1 s.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: format!("/docs#{code}"),
            title: Cow::Borrowed(code.title()),
            status: code.status().as_u16(),
            code,
            detail: detail.into(),
            opening: None,
            challenge: None,
            blocked: None,
            retry_after: code.is_worth_retrying().then_some(1),
        }
    }

    /// Sets `Retry-After` in seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The request is malformed or violates a rule: 400.
    #[must_use]
    pub fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// A bug: 500 without details; the caller logs the cause.
    #[must_use]
    pub fn internal() -> Self {
        Self::new(Code::Internal, "something went wrong on our side")
    }

    /// A temporary failure, such as an unreachable store: 503 with `Retry-After`.
    #[must_use]
    pub fn unavailable(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Unavailable, detail)
    }

    fn body(&self) -> Vec<u8> {
        // Serializing a struct of strings and numbers does not fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, self.body()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(challenge) = self.code.challenge() {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_carries_the_five_members_and_nothing_else() {
        let json = serde_json::to_value(Problem::new(Code::SoldOut, "no stock left")).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "type": "/docs#SOLD_OUT",
                "title": "Sold out",
                "status": 409,
                "code": "SOLD_OUT",
                "detail": "no stock left",
            })
        );
    }

    #[test]
    fn a_problem_response_is_not_cached() {
        let response = Problem::new(Code::Unauthorized, "who are you?").into_response();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(response.headers()[CONTENT_TYPE], CONTENT);
        assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
        assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
        assert!(!response.headers().contains_key(RETRY_AFTER));
    }

    #[test]
    fn temporary_failures_carry_retry_after() {
        let plain = Problem::unavailable("the store is unavailable").into_response();
        assert_eq!(plain.headers()[RETRY_AFTER], "1");
        let limited = Problem::new(Code::RateLimited, "slow down").retry_after(9);
        assert_eq!(limited.into_response().headers()[RETRY_AFTER], "9");
    }
}
