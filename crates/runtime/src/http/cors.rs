//! Cross-origin requests (CORS, Fetch standard) of pages of configured origins. Cookies are not permitted: tokens and
//! identities are sent in headers.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
    VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use axum::response::Response;

/// How long browsers may cache the answer to a preflight request: 2 h, the most that Chromium does.
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("7200");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// The headers that clients send.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, user-id, daegi-code, daegi-challenge, daegi-identity, last-event-id, cache-control",
);
/// The headers that clients read.
const RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static("retry-after");

/// The origins whose pages may read responses. None by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CorsOrigins {
    origins: Arc<[HeaderValue]>,
    permits_all: bool,
}

/// A text that is not a list of origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be * or origins without a path, such as https://shop.example, separated by commas")]
pub struct InvalidOrigins;

impl CorsOrigins {
    /// Parses origins that are separated by commas, or `*`. An empty text is none.
    ///
    /// # Errors
    /// If one of them is not an origin as browsers send it.
    pub fn parse(text: &str) -> Result<Self, InvalidOrigins> {
        if text.trim() == "*" {
            return Ok(Self { permits_all: true, ..Self::default() });
        }
        let all = text.split(',').map(str::trim).filter(|origin| !origin.is_empty());
        let origins = all.map(parse_origin).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { origins: origins.into(), permits_all: false })
    }

    /// Returns the origin of a request if it is permitted; `None` also for a request without one.
    pub(super) fn permitted(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        (self.permits_all || self.origins.contains(origin)).then(|| origin.clone())
    }
}

/// Browsers send origins in lower case, without a slash at the end.
fn parse_origin(text: &str) -> Result<HeaderValue, InvalidOrigins> {
    let uri: Uri = text.parse().map_err(|_| InvalidOrigins)?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_rest = text.ends_with('/') || uri.path() != "/" || uri.query().is_some();
    if !is_http
        || has_rest
        || text.contains(['@', '#'])
        || text.contains('*')
        || text != text.to_ascii_lowercase()
    {
        return Err(InvalidOrigins);
    }
    HeaderValue::from_str(text).map_err(|_| InvalidOrigins)
}

/// Returns whether a browser asks what it may send.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Answers a preflight request.
pub(super) fn preflight(origin: &HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS);
    permit(response, origin)
}

/// Permits the page to read a response.
pub(super) fn permit(mut response: Response, origin: &HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
    headers.append(VARY, HeaderValue::from_static("Origin"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(origins: &str, origin: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        CorsOrigins::parse(origins).unwrap().permitted(&headers).is_some()
    }

    #[test]
    fn only_the_exact_origin_is_permitted() {
        let origins = "https://shop.example, http://localhost:3000";
        assert!(permits(origins, "https://shop.example"));
        assert!(permits(origins, "http://localhost:3000"));
        for other in [
            "http://shop.example",
            "https://shop.example:8443",
            "https://shop.example.evil.example",
            "https://evil-shop.example",
            "null",
            "*",
        ] {
            assert!(!permits(origins, other), "{other}");
            assert!(!permits("", other), "{other}");
            assert!(permits("*", other), "{other}");
        }
    }

    #[test]
    fn an_address_that_browsers_do_not_send_as_origin_is_refused() {
        for bad in [
            "shop.example",
            "https://shop.example/",
            "https://Shop.example",
            "https://a/b",
            "null",
            "https://u@a",
            "*, https://a",
            "https://*.example",
        ] {
            assert_eq!(CorsOrigins::parse(bad), Err(InvalidOrigins), "{bad}");
        }
    }
}
