//! Where in a request the pass is, and how a browser keeps it.
//!
//! In this order: the header `daegi-pass`, the parameter `pass` of the address (an item's
//! `entryUrl` brings people so), the cookie that the guard made of it, `Authorization: Bearer`.
//! The last one is last because a service may use it for something else. Where both address and
//! cookie carry one, `Guard::admit` decides.

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use daegi_domain::ItemId;

/// The passes that a request brings, at most one of each kind.
pub(crate) enum Brought<'a> {
    /// One pass, which the browser has already or which does not come from a browser.
    Kept(&'a str),
    /// One pass, in the address: the browser must keep it.
    InAddress(&'a str),
    /// The browser kept one and was sent here with another one.
    Both { address: &'a str, cookie: &'a str },
}

/// The first pass that a request brings for this item, or an empty text.
#[must_use]
pub fn find<'a>(parts: &'a Parts, item: &ItemId) -> &'a str {
    match brought(parts, item) {
        Brought::Kept(pass) | Brought::InAddress(pass) | Brought::Both { address: pass, .. } => {
            pass
        }
    }
}

pub(crate) fn brought<'a>(parts: &'a Parts, item: &ItemId) -> Brought<'a> {
    let headers = &parts.headers;
    if let Some(own) = text(headers, "daegi-pass") {
        return Brought::Kept(own);
    }
    match (parts.uri.query().and_then(parameter), cookie(headers, item)) {
        (Some(address), Some(cookie)) => Brought::Both { address, cookie },
        (Some(address), None) => Brought::InAddress(address),
        (None, Some(cookie)) => Brought::Kept(cookie),
        (None, None) => Brought::Kept(bearer(headers).unwrap_or_default()),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

/// A pass is made of characters that need no escaping.
fn parameter(query: &str) -> Option<&str> {
    let mut parameters = query.split('&').filter_map(|pair| pair.strip_prefix("pass="));
    parameters.next().filter(|pass| !pass.is_empty())
}

fn cookie<'a>(headers: &'a HeaderMap, item: &ItemId) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).into_iter().filter_map(|header| header.to_str().ok());
    let pairs = all.flat_map(|header| header.split(';')).filter_map(|pair| pair.split_once('='));
    let name = name_of_cookie(item);
    let mut ours = pairs.filter(|(found, _)| found.trim() == name).map(|(_, pass)| pass.trim());
    ours.find(|pass| !pass.is_empty())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, pass) = text(headers, AUTHORIZATION.as_str())?.split_once(' ')?;
    let pass = pass.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !pass.is_empty()).then_some(pass)
}

/// One for each item, since a person may be inside several. Ids are made of characters that
/// names of cookies may have.
fn name_of_cookie(item: &ItemId) -> String {
    format!("daegi-pass-{item}")
}

/// Keeps a pass in the browser for as long as it is good, away from scripts and other sites.
pub(crate) fn keep(item: &ItemId, pass: &str, seconds: u64, https: bool) -> Option<HeaderValue> {
    let name = name_of_cookie(item);
    let secure = if https { "; Secure" } else { "" };
    let text = format!("{name}={pass}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&text).ok()
}
