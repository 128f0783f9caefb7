//! The request at the proxy, as the subrequest describes it. A client can send these headers too, but it can only change
//! where it is sent itself: nothing of them decides whether a request passes.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Subrequest;

/// Maximum length of an address that the gate redirects to, in bytes.
const MAX_ADDRESS: usize = 2_048;

/// The query parameter of a pass, as in an item's `entryUrl`.
const PASS: &str = "pass=";

/// The option of nginx, whose subrequests may be refused with 401 only.
const DENY_WITH_401: &str = "deny=401";

/// What stays readable in a query parameter.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The request at the proxy.
pub(super) struct Original<'a> {
    /// The item, as the path of the subrequest has it.
    pub(super) item: &'a str,
    /// The query of the request, which may have a pass.
    pub(super) query: Option<&'a str>,
    /// The address, if it is a path on the same origin.
    pub(super) address: Option<Address<'a>>,
    pub(super) denial: Denial,
    is_read: bool,
}

/// How a proxy learns that a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial {
    /// By any status; redirects are passed on to the browser.
    AnyStatus,
    /// By 401, with the redirect in a header.
    Unauthorized,
}

/// A path with its query, on the origin of the site: `//host` and `/\host`, which browsers read as another origin, are
/// none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address<'a>(&'a str);

/// A path on the site to which a user returns after waiting. It has no pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReturnPath(String);

impl<'a> Original<'a> {
    /// Reads a subrequest for `/gate/{itemId}`, whose headers name the address, or for `/gate/{itemId}/path?query`, to
    /// which the proxy appended it. Returns `None` for other paths.
    pub(super) fn of(subrequest: Subrequest<'a>) -> Option<Self> {
        let Subrequest { method, uri, headers } = subrequest;
        let rest = uri.path().strip_prefix("/gate/")?;
        let (item, is_appended) = match rest.split_once('/') {
            Some((item, _)) => (item, true),
            None => (rest, false),
        };
        let named = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let (text, denial) = if is_appended {
            let whole = uri.path_and_query().map_or("", |whole| whole.as_str());
            // The query belongs to the client's request, so that it has no option.
            (whole.get("/gate/".len() + item.len()..), Denial::AnyStatus)
        } else {
            let is_nginx = uri.query() == Some(DENY_WITH_401);
            let denial = if is_nginx { Denial::Unauthorized } else { Denial::AnyStatus };
            (named("x-original-uri").or_else(|| named("x-forwarded-uri")), denial)
        };
        let query = text.and_then(|text| Some(text.split_once('?')?.1));
        let method = named("x-original-method")
            .or_else(|| named("x-forwarded-method"))
            .unwrap_or(method.as_str());
        let is_read = matches!(method, "GET" | "HEAD");
        Some(Self { item, query, address: text.and_then(Address::parse), denial, is_read })
    }

    /// Returns whether the request reads, so that it may be repeated after a redirect.
    pub(super) fn is_read(&self) -> bool {
        self.is_read
    }

    /// Returns whether a browser loads a page with the request.
    pub(super) fn is_navigation(&self, headers: &HeaderMap) -> bool {
        let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        self.is_read && accept.is_some_and(|accept| accept.contains("text/html"))
    }
}

impl<'a> Address<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let is_path = text.starts_with('/') && !text.starts_with("//");
        // Browsers read a backslash as a slash, and skip control characters.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        let is_whole = !text.contains('#') && text.len() <= MAX_ADDRESS;
        (is_path && is_plain && is_whole).then_some(Self(text))
    }

    /// Returns whether the query has a text with the form of a pass. A service may have a parameter of this name.
    pub(super) fn has_pass(self) -> bool {
        let query = self.0.split_once('?').map_or("", |(_, query)| query);
        query.split('&').any(is_pass)
    }

    /// Returns the address without a pass.
    pub(super) fn cleaned(self) -> String {
        let Some((path, query)) = self.0.split_once('?') else {
            return self.0.to_owned();
        };
        let kept: Vec<_> = query.split('&').filter(|pair| !is_pass(pair)).collect();
        if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
    }
}

fn is_pass(pair: &str) -> bool {
    pair.strip_prefix(PASS).is_some_and(|pass| pass.split('.').count() == 3)
}

impl ReturnPath {
    /// Returns the way back to an address.
    pub(super) fn from_address(address: &Address<'_>) -> Option<Self> {
        Some(Self(address.cleaned())).filter(|back| back.0 != "/")
    }

    /// Returns the path as the value of a query parameter.
    pub(crate) fn encoded(&self) -> String {
        utf8_percent_encode(&self.0, ENCODED).to_string()
    }

    /// Reads a decoded query parameter of the waiting page.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Address::parse(text).map(|address| Self(address.cleaned()))
    }

    /// Returns where an admitted user continues: at this path on the origin of `entry_url`, with the pass.
    pub(crate) fn with_pass(&self, entry_url: &str, pass: &str) -> String {
        let separator = if self.0.contains('?') { '&' } else { '?' };
        format!("{}{}{separator}{PASS}{pass}", origin_of(entry_url), self.0)
    }
}

/// Returns the origin of an absolute URL; an empty text for a path, which is on the origin of the waiting page.
fn origin_of(url: &str) -> &str {
    let Some(host) = url.find("://").map(|at| at + 3) else { return "" };
    let end = url[host..].find(['/', '?', '#', '\\']).map_or(url.len(), |at| host + at);
    &url[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_on_the_same_origin_is_an_address() {
        for good in ["/", "/shop", "/shop?a=1&b=//x", "/a//b", "/@evil.example"] {
            assert!(Address::parse(good).is_some(), "{good}");
        }
        let long = format!("/{}", "a".repeat(MAX_ADDRESS));
        for bad in [
            "",
            "shop",
            "//evil.example",
            "/\\evil.example",
            "/a\\b",
            "/\t/evil.example",
            "/a b",
            "https://evil.example/",
            "javascript:alert(1)",
            "/shop#top",
            "/\r\nset-cookie: a=b",
            "/ü",
            &long,
        ] {
            assert!(Address::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_pass_is_removed_from_an_address_and_other_parameters_stay() {
        let cleaned = |text| Address::parse(text).unwrap().cleaned();
        assert_eq!(cleaned("/shop?pass=a.b.c"), "/shop");
        assert_eq!(cleaned("/shop?x=1&pass=a.b.c&y=2&pass=d.e.f"), "/shop?x=1&y=2");
        assert_eq!(cleaned("/shop?pass=season&x"), "/shop?pass=season&x");
        assert_eq!(cleaned("/shop"), "/shop");
    }

    #[test]
    fn a_way_back_stays_on_the_origin_of_the_entry() {
        let to = |back, entry| ReturnPath::parse(back).unwrap().with_pass(entry, "a.b.c");
        let entry = "https://shop.example:8443/checkout?pass=x";
        assert_eq!(to("/cart", entry), "https://shop.example:8443/cart?pass=a.b.c");
        assert_eq!(to("/cart?x=1", "/checkout"), "/cart?x=1&pass=a.b.c");
        assert_eq!(to("/@evil", "https://shop.example"), "https://shop.example/@evil?pass=a.b.c");
        assert_eq!(ReturnPath::parse("//evil.example"), None);
    }

    #[test]
    fn a_way_back_is_one_query_parameter() {
        let back = ReturnPath::parse("/a?b=1&c=%26#".trim_end_matches('#')).unwrap();
        assert_eq!(back.encoded(), "/a%3Fb%3D1%26c%3D%2526");
    }
}
