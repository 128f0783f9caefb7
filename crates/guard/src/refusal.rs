//! Why somebody is not let in, and what they are answered.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::json;

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// They brought no pass.
    #[error("there is no pass, please wait in line first")]
    Missing,
    /// Malformed, forged, or signed by a key that daegi does not publish.
    #[error("the pass was not issued by the waiting room")]
    Invalid,
    /// Genuine, but too old: the place was given to somebody else.
    #[error("the pass has expired, please join the line again")]
    Expired,
    /// From the future.
    #[error("the pass is not valid yet")]
    NotYetValid,
    /// Genuine, but for something else.
    #[error("the pass is for another item")]
    OtherItem,
    /// Genuine, but the entry was completed, given back or taken away.
    #[error("the pass was used or given back, please join the line again")]
    Revoked,
    /// Nobody can say: daegi does not answer.
    #[error("the waiting room cannot be asked right now")]
    Unavailable,
    /// The request names no item.
    #[error("there is no such item")]
    NoItem,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Missing,
        Self::Invalid,
        Self::Expired,
        Self::NotYetValid,
        Self::OtherItem,
        Self::Revoked,
        Self::Unavailable,
        Self::NoItem,
    ];

    const fn facts(self) -> (StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Self::Missing => (S::UNAUTHORIZED, "PASS_MISSING"),
            Self::Invalid => (S::UNAUTHORIZED, "PASS_INVALID"),
            Self::Expired => (S::UNAUTHORIZED, "PASS_EXPIRED"),
            Self::NotYetValid => (S::UNAUTHORIZED, "PASS_NOT_YET_VALID"),
            Self::OtherItem => (S::FORBIDDEN, "PASS_OTHER_ITEM"),
            Self::Revoked => (S::FORBIDDEN, "PASS_REVOKED"),
            Self::Unavailable => (S::SERVICE_UNAVAILABLE, "UNAVAILABLE"),
            Self::NoItem => (S::NOT_FOUND, "ITEM_NOT_FOUND"),
        }
    }

    /// The status for clients that are no browsers.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.facts().0
    }

    /// The reason for programs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.facts().1
    }

    /// Whether waiting in line mends it.
    #[must_use]
    pub const fn wants_the_line(self) -> bool {
        !matches!(self, Self::Unavailable | Self::NoItem)
    }

    /// The answer. People are sent to the waiting page, programs get an RFC 9457 problem.
    pub fn answer<B: From<String>>(self, accept: &str, waiting_page: &str) -> Response<B> {
        let browser = accept.contains("text/html");
        let mut answer = match HeaderValue::from_str(waiting_page) {
            Ok(page) if browser && self.wants_the_line() => sent_to(page),
            _ => self.problem(waiting_page),
        };
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("accept"));
        answer
    }

    fn problem<B: From<String>>(self, waiting_page: &str) -> Response<B> {
        let status = self.status();
        let mut body = json!({
            "type": "about:blank",
            "title": status.canonical_reason(),
            "status": status.as_u16(),
            "code": self.code(),
            "detail": self.to_string(),
        });
        if self.wants_the_line() {
            body["waitingPage"] = waiting_page.into();
        }
        let mut answer = Response::new(B::from(body.to_string()));
        *answer.status_mut() = status;
        let problem = (CONTENT_TYPE, "application/problem+json");
        for (name, value) in [Some(problem), self.hint()].into_iter().flatten() {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        answer
    }

    /// RFC 9110 wants every 401 to say how to authenticate.
    const fn hint(self) -> Option<(HeaderName, &'static str)> {
        match self {
            Self::Missing => Some((WWW_AUTHENTICATE, "Bearer")),
            Self::Invalid | Self::Expired | Self::NotYetValid => {
                Some((WWW_AUTHENTICATE, r#"Bearer error="invalid_token""#))
            }
            Self::Unavailable => Some((RETRY_AFTER, "1")),
            Self::OtherItem | Self::Revoked | Self::NoItem => None,
        }
    }
}

/// 303: whatever they wanted to do, they look at the page now.
fn sent_to<B: From<String>>(page: HeaderValue) -> Response<B> {
    let mut answer = Response::new(B::from(String::new()));
    *answer.status_mut() = StatusCode::SEE_OTHER;
    answer.headers_mut().insert(LOCATION, page);
    answer
}
