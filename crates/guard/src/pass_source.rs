//! Finds the pass of a request and writes the cookie that stores it.
//!
//! Sources, in this order: the header `daegi-pass`, the query parameter `pass` (as in an item's
//! `entryUrl`), the guard's cookie, `Authorization: Bearer`. The bearer token is last because a
//! service may use it for its own authentication. If both URL and cookie carry a pass,
//! `Guard::authorize` decides.

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use daegi_domain::ItemId;

/// The passes of a request, at most one per source.
#[derive(Debug, Clone, Copy)]
pub enum FoundPass<'a> {
    /// One pass, stored in the guard's cookie or sent in a header.
    Stored(&'a str),
    /// One pass, in the URL: the response must set the cookie.
    InUrl(&'a str),
    /// One pass in the URL and one in the cookie.
    Both {
        /// The one in the URL.
        url: &'a str,
        /// The one in the cookie.
        cookie: &'a str,
    },
}

/// Returns the first pass of a request for this item, or an empty string.
#[must_use]
pub fn find_pass<'a>(parts: &'a Parts, item: &ItemId) -> &'a str {
    match find(&parts.headers, parts.uri.query(), item) {
        FoundPass::Stored(pass) | FoundPass::InUrl(pass) | FoundPass::Both { url: pass, .. } => {
            pass
        }
    }
}

/// Finds the passes of a request for this item in its headers and its query.
#[must_use]
pub fn find<'a>(headers: &'a HeaderMap, query: Option<&'a str>, item: &ItemId) -> FoundPass<'a> {
    if let Some(pass) = text(headers, "daegi-pass") {
        return FoundPass::Stored(pass);
    }
    match (query.and_then(from_query), from_cookie(headers, item)) {
        (Some(url), Some(cookie)) => FoundPass::Both { url, cookie },
        (Some(url), None) => FoundPass::InUrl(url),
        (None, Some(cookie)) => FoundPass::Stored(cookie),
        (None, None) => FoundPass::Stored(from_bearer(headers).unwrap_or_default()),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

/// A pass contains no characters that need URL escaping.
fn from_query(query: &str) -> Option<&str> {
    let mut parameters = query.split('&').filter_map(|pair| pair.strip_prefix("pass="));
    parameters.next().filter(|pass| !pass.is_empty())
}

fn from_cookie<'a>(headers: &'a HeaderMap, item: &ItemId) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).into_iter().filter_map(|header| header.to_str().ok());
    let pairs = all.flat_map(|header| header.split(';')).filter_map(|pair| pair.split_once('='));
    let name = cookie_name(item);
    let mut ours = pairs.filter(|(found, _)| found.trim() == name).map(|(_, pass)| pass.trim());
    ours.find(|pass| !pass.is_empty())
}

fn from_bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, pass) = text(headers, AUTHORIZATION.as_str())?.split_once(' ')?;
    let pass = pass.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !pass.is_empty()).then_some(pass)
}

/// One cookie per item, because a user may have entries of several items. All characters of item
/// ids are allowed in cookie names.
fn cookie_name(item: &ItemId) -> String {
    format!("daegi-pass-{item}")
}

/// Stores a pass in the browser until it expires, unreadable to scripts and other sites. Returns `None` for text that
/// is not a pass.
#[must_use]
pub fn cookie(item: &ItemId, pass: &str, seconds: u64, https: bool) -> Option<HeaderValue> {
    let name = cookie_name(item);
    let secure = if https { "; Secure" } else { "" };
    let text = format!("{name}={pass}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&text).ok()
}
