//! Reasons to refuse a request, and the responses.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::json;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// The request carries no pass.
    #[error("there is no pass, please wait in line first")]
    Missing,
    /// Malformed, forged, or signed with a key that daegi does not publish.
    #[error("the pass was not issued by the waiting room")]
    Invalid,
    /// The pass has expired, and its entry with it.
    #[error("the pass has expired, please join the line again")]
    Expired,
    /// `iat` or `nbf` is in the future.
    #[error("the pass is not valid yet")]
    NotYetValid,
    /// The pass belongs to another item.
    #[error("the pass is for another item")]
    OtherItem,
    /// The entry was completed, given back or ended by an operator.
    #[error("the pass was used or given back, please join the line again")]
    Revoked,
    /// daegi was needed and is unreachable.
    #[error("the waiting room cannot be asked right now")]
    Unavailable,
    /// The request names no item.
    #[error("there is no such item")]
    NoItem,
}

impl Refusal {
    /// All reasons.
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

    /// Returns the HTTP status for clients other than browsers.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.facts().0
    }

    /// Returns the machine-readable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        self.facts().1
    }

    /// Returns whether joining the line resolves the refusal.
    #[must_use]
    pub const fn should_rejoin(self) -> bool {
        !matches!(self, Self::Unavailable | Self::NoItem)
    }

    /// Builds the response: browsers are redirected to the waiting page, other clients get an
    /// RFC 9457 problem.
    pub fn to_response<B: From<String>>(self, accept: &str, waiting_page: &str) -> Response<B> {
        let is_browser = accept.contains("text/html");
        let mut response = match HeaderValue::from_str(waiting_page) {
            Ok(page) if is_browser && self.should_rejoin() => redirect_to(page),
            _ => self.problem(waiting_page),
        };
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("accept"));
        response
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
        if self.should_rejoin() {
            body["waitingPage"] = waiting_page.into();
        }
        let mut response = Response::new(B::from(body.to_string()));
        *response.status_mut() = status;
        let problem = (CONTENT_TYPE, "application/problem+json");
        for (name, value) in [Some(problem), self.hint()].into_iter().flatten() {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }

    /// RFC 9110 requires `WWW-Authenticate` on every 401.
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

/// 303, so that the browser loads the page with GET whatever the request's method was.
fn redirect_to<B: From<String>>(page: HeaderValue) -> Response<B> {
    let mut response = Response::new(B::from(String::new()));
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, page);
    response
}
