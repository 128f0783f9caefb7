//! The gate: decides for a proxy whether a request may pass to the service behind it.
//!
//! The proxy sends a subrequest for every request. The gate verifies the pass as the guards do, in memory and without a
//! store call: an entry that was completed keeps its pass until the pass expires.
//!
//! | file | contents |
//! |---|---|
//! | `gate/original.rs` | the request at the proxy: its address and method |
//! | `gate/verified.rs` | the passes that were verified before |

mod original;
mod verified;

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{ACCEPT, CACHE_CONTROL, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use daegi_domain::{ItemId, LaneName};
use daegi_guard::{Authorization, Entry, FoundPass, Guard, GuardConfig, Refusal};
use daegi_runtime::Clock;
use metrics::{Counter, Unit, counter, describe_counter};

pub(crate) use self::original::ReturnPath;
use self::original::{Denial, Original};
use self::verified::VerifiedPasses;

/// Checks of the gate, by `result`: `known` passes, passes `verified` for the first time, `refused` requests.
const CHECKS: &str = "daegi_api_gate_checks_total";

const USER: HeaderName = HeaderName::from_static("daegi-user");
const NUMBER: HeaderName = HeaderName::from_static("daegi-number");
const LANE: HeaderName = HeaderName::from_static("daegi-lane");
/// Where a refused browser continues, for proxies that accept no redirect from the gate.
const CONTINUE_AT: HeaderName = HeaderName::from_static("daegi-location");

/// Checks the requests of proxies.
pub(crate) struct Gate {
    guard: Guard,
    clock: Clock,
    /// The origin of the waiting page; empty if it is the one of the site.
    public_url: String,
    verified: VerifiedPasses,
    known: Counter,
    first: Counter,
    refused: Counter,
}

/// A request of a proxy.
#[derive(Clone, Copy)]
pub(crate) struct Subrequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
}

impl Gate {
    /// Creates a gate that verifies passes with these keys, a JSON Web Key Set.
    pub(crate) fn new(jwks: &str, public_url: String, clock: Clock) -> Self {
        describe_counter!(CHECKS, Unit::Count, "Checks of the gate, by result");
        let now = clock.clone();
        let now = daegi_guard::Clock::new(move || now.now_ms());
        let config = GuardConfig { clock: now, ..GuardConfig::new("") };
        #[expect(clippy::expect_used, reason = "the pod serialized these keys")]
        let guard = Guard::with_keys(config, jwks).expect("the published keys are a key set");
        let checks = |result: &'static str| counter!(CHECKS, "result" => result);
        let (known, first, refused) = (checks("known"), checks("verified"), checks("refused"));
        let verified = VerifiedPasses::default();
        Self { guard, clock, public_url, verified, known, first, refused }
    }

    /// Answers a request whose only pass was verified before; `None` for all others.
    pub(crate) fn check_known(&self, subrequest: Subrequest<'_>) -> Option<Response<Body>> {
        let original = Original::of(subrequest)?;
        let item = ItemId::parse(original.item).ok()?;
        let FoundPass::Stored(pass) = daegi_guard::find(subrequest.headers, original.query, &item)
        else {
            return None;
        };
        let known = self.verified.get(pass, &item, self.clock.now_ms())?;
        self.known.increment(1);
        Some(known.response())
    }

    /// Answers a request; `None` if the path is not one of the gate.
    pub(crate) async fn check(&self, subrequest: Subrequest<'_>) -> Option<Response<Body>> {
        let original = Original::of(subrequest)?;
        let Ok(item) = ItemId::parse(original.item) else {
            return Some(self.refuse(Refusal::NoItem, "", &original, subrequest.headers));
        };
        let headers = subrequest.headers;
        Some(match self.guard.authorize_head(headers, original.query, &item).await {
            Ok(Authorization { entry, keep }) => {
                self.first.increment(1);
                let found = daegi_guard::find(headers, original.query, &item);
                let allowed = Allowed::new(&entry);
                if let FoundPass::Stored(pass) = found {
                    self.verified.insert(pass, Arc::clone(&allowed));
                }
                let is_in_address = !matches!(found, FoundPass::Stored(_));
                match original.address.as_ref().filter(|_| original.is_navigation(headers)) {
                    Some(address) if is_in_address && address.has_pass() => {
                        let cookie = keep.and_then(|pass| self.cookie(&entry, &pass, headers));
                        redirect(address.cleaned(), cookie, original.denial)
                    }
                    _ => allowed.response(),
                }
            }
            Err(refusal) => {
                let page = self.waiting_page(&item, &original);
                self.refuse(refusal, &page, &original, headers)
            }
        })
    }

    /// Returns the address of the waiting page, with the way back.
    fn waiting_page(&self, item: &ItemId, original: &Original<'_>) -> String {
        let page = format!("{}/wait/{item}", self.public_url);
        match original.address.as_ref().filter(|_| original.is_read()) {
            Some(address) => {
                let back = ReturnPath::from_address(address);
                back.map_or(page.clone(), |back| format!("{page}?return={}", back.encoded()))
            }
            None => page,
        }
    }

    fn refuse(
        &self,
        refusal: Refusal,
        page: &str,
        original: &Original<'_>,
        headers: &HeaderMap,
    ) -> Response<Body> {
        self.refused.increment(1);
        let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let mut response: Response<Body> = refusal.to_response(accept.unwrap_or_default(), page);
        if response.status() == StatusCode::SEE_OTHER {
            *response.status_mut() = StatusCode::FOUND;
        }
        original.denial.adapt(response)
    }

    /// Returns the cookie that stores a pass. It is sent over https only, if the site is.
    fn cookie(&self, entry: &Entry, pass: &str, headers: &HeaderMap) -> Option<HeaderValue> {
        let left = entry.expires_at.saturating_sub(self.clock.now_ms() / 1000);
        let is_https = match headers.get("x-forwarded-proto") {
            Some(proto) => proto.as_bytes().eq_ignore_ascii_case(b"https"),
            None => self.public_url.starts_with("https:"),
        };
        daegi_guard::cookie(&entry.item, pass, left, is_https)
    }
}

/// Redirects a browser to the address without the pass.
fn redirect(address: String, cookie: Option<HeaderValue>, denial: Denial) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    // The address was checked when it was read.
    headers.extend(HeaderValue::from_str(&address).map(|address| (LOCATION, address)));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
    denial.adapt(response)
}

impl Denial {
    /// Replaces the status for a proxy that understands only 401, and names the redirect in a header instead.
    fn adapt(self, mut response: Response<Body>) -> Response<Body> {
        if self == Self::Unauthorized {
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            if let Some(location) = response.headers_mut().remove(LOCATION) {
                response.headers_mut().insert(CONTINUE_AT, location);
            }
        }
        response
    }
}

/// What the gate answers for a valid pass.
#[derive(Debug)]
pub(crate) struct Allowed {
    item: ItemId,
    user: HeaderValue,
    number: HeaderValue,
    lane: HeaderValue,
    /// In Unix seconds.
    expires_at: u64,
}

impl Allowed {
    fn new(entry: &Entry) -> Arc<Self> {
        // Ids and names have only visible ASCII characters.
        let text = |text: &str| {
            HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
        };
        Arc::new(Self {
            item: entry.item.clone(),
            user: text(entry.user.as_str()),
            number: HeaderValue::from(entry.number.0),
            // Always present, so that a client cannot send this header to the service itself.
            lane: text(entry.lane.as_ref().map_or(LaneName::STANDARD, LaneName::as_str)),
            expires_at: entry.expires_at,
        })
    }

    fn response(&self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        headers.insert(USER, self.user.clone());
        headers.insert(NUMBER, self.number.clone());
        headers.insert(LANE, self.lane.clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
