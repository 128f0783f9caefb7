//! Checks passes and completes entries.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use axum::http::request::Parts;
use daegi_domain::{ItemId, Millis};

use crate::claims::Claims;
use crate::entry::Entry;
use crate::health_reports::HealthReports;
use crate::internal_client::InternalClient;
use crate::jwks::{JwksClient, Keys, parse_keys};
use crate::pass_source::{FoundPass, find};
use crate::refusal::Refusal;

/// Returns the time in milliseconds since the Unix epoch.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Millis + Send + Sync>);

/// What a guard does while daegi is unreachable and the guard needs it: for the keys, until the
/// first successful fetch, or for an online check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnUnavailable {
    /// Refuses requests that could not be checked, with 503.
    #[default]
    FailClosed,
    /// Accepts any well-formed, unexpired pass without verifying its signature or revocation.
    FailOpen,
}

/// Configuration of a guard. [`GuardConfig::new`] sets the defaults.
#[derive(Debug, Clone)]
pub struct GuardConfig {
    /// daegi's public URL as this service reaches it. The guard fetches the keys from it.
    pub public_url: String,
    /// daegi's public URL as browsers reach it. Redirects to the waiting page use it.
    pub browser_url: String,
    /// daegi's internal URL. Required to complete entries and to check online.
    pub internal_url: Option<String>,
    /// Also checks with daegi, for each request, that the entry has not ended.
    pub online: bool,
    /// What to do while daegi is unreachable.
    pub on_unavailable: OnUnavailable,
    /// Tolerated difference between the clocks of daegi and this service.
    pub clock_skew: Duration,
    /// Age at which keys are fetched again.
    pub key_ttl: Duration,
    /// Minimum time between two fetches of keys, whatever key ids passes name.
    pub min_fetch_interval: Duration,
    /// The name of this process in reports about the health of this service, which lines with an adaptive pace follow: 1 to 64
    /// letters, digits or `. _ : -`, different for each process. `None` sends no reports. Requires `internal_url`.
    pub report_health_as: Option<String>,
    /// Timeout of one call to daegi.
    pub timeout: Duration,
    /// Source of the current time.
    pub clock: Clock,
}

/// Why a guard cannot be built or an entry cannot be completed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Completing entries and online checks call the internal listener.
    #[error(
        "internal_url is not configured; it is required to complete entries, to check online and to report health"
    )]
    InternalUrlMissing,
    /// The guard's default client has no TLS.
    #[error("{0} needs TLS, which the default client lacks; use http or Guard::with_client")]
    TlsUnsupported(String),
    /// The text is not a JSON Web Key Set.
    #[error("the keys are not a JSON Web Key Set: {0}")]
    InvalidKeys(#[source] serde_json::Error),
    /// daegi is unreachable or responded with an error.
    #[error("daegi is unavailable")]
    Unavailable(#[from] reqwest::Error),
}

/// The outcome of an authorized request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    /// The entry of the chosen pass.
    pub entry: Entry,
    /// The chosen pass if it came with the URL: the response must set the guard's cookie to it.
    pub keep: Option<String>,
}

/// Accepts only users admitted by the waiting room. Cheap to clone; clones share the fetched keys.
#[derive(Debug, Clone)]
pub struct Guard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    keys: Keys,
    internal: Option<InternalClient>,
    health: Option<HealthReports>,
    config: GuardConfig,
}

impl GuardConfig {
    /// Configuration for the daegi at this public URL, with all defaults.
    #[must_use]
    pub fn new(public_url: &str) -> Self {
        let public_url = public_url.trim_end_matches('/').to_owned();
        Self {
            browser_url: public_url.clone(),
            public_url,
            internal_url: None,
            online: false,
            on_unavailable: OnUnavailable::default(),
            clock_skew: Duration::from_secs(5),
            key_ttl: Duration::from_secs(300),
            min_fetch_interval: Duration::from_secs(5),
            report_health_as: None,
            timeout: Duration::from_secs(2),
            clock: Clock::system(),
        }
    }
}

impl Guard {
    /// Creates a guard that calls daegi over plain HTTP. The first pass triggers the first fetch.
    ///
    /// # Errors
    /// If a URL to call is `https`, or `online` is set without `internal_url`.
    pub fn new(config: GuardConfig) -> Result<Self, Error> {
        let mut urls = std::iter::once(&config.public_url).chain(&config.internal_url);
        if let Some(url) = urls.find(|url| is_https(url)) {
            return Err(Error::TlsUnsupported(url.clone()));
        }
        // daegi runs in the same network: ignore proxy settings.
        let http = reqwest::Client::builder().no_proxy().build()?;
        Self::with_client(config, http)
    }

    /// Creates a guard with this client, for example one with TLS, own certificates or a proxy.
    ///
    /// # Errors
    /// If `online` or `report_health_as` is set without `internal_url`.
    pub fn with_client(config: GuardConfig, http: reqwest::Client) -> Result<Self, Error> {
        let needs_internal = config.online || config.report_health_as.is_some();
        if needs_internal && config.internal_url.is_none() {
            return Err(Error::InternalUrlMissing);
        }
        let keys = Keys::Fetched(JwksClient::new(http.clone(), &config));
        let internal = config
            .internal_url
            .as_ref()
            .map(|address| InternalClient::new(http, address, config.timeout));
        let health = config.report_health_as.clone().map(HealthReports::new);
        Ok(Self(Arc::new(Inner { keys, internal, health, config })))
    }

    /// Creates a guard with these keys, a JSON Web Key Set. It calls no other process, so that it cannot complete
    /// entries.
    ///
    /// # Errors
    /// If the text is not a key set, or `online` is set.
    pub fn with_keys(config: GuardConfig, jwks: &str) -> Result<Self, Error> {
        if config.online {
            return Err(Error::InternalUrlMissing);
        }
        let keys = Keys::Fixed(parse_keys(jwks.as_bytes()).map_err(Error::InvalidKeys)?);
        Ok(Self(Arc::new(Inner { keys, internal: None, health: None, config })))
    }

    /// Checks a pass for `item`.
    ///
    /// # Errors
    /// The reason if the pass is refused.
    pub async fn check(&self, item: &ItemId, pass: &str) -> Result<Entry, Refusal> {
        let entry = self.read(item, pass).await?;
        self.check_online(&entry, pass).await?;
        Ok(entry)
    }

    /// Checks a request for `item` and chooses between its passes.
    ///
    /// A browser may send two, one in its cookie and one in the URL. A link must neither sign a user
    /// out nor replace them by another user. Therefore a valid cookie wins unless the URL carries a
    /// pass of the same user that expires later. A pass that was not chosen is not stored.
    ///
    /// # Errors
    /// The reason if the request is refused; if both passes are refused, the reason of the one in the URL.
    pub async fn authorize(&self, parts: &Parts, item: &ItemId) -> Result<Authorization, Refusal> {
        self.authorize_head(&parts.headers, parts.uri.query(), item).await
    }

    /// The same for a request of which these headers and this query are known.
    ///
    /// # Errors
    /// As [`Guard::authorize`].
    pub async fn authorize_head(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        item: &ItemId,
    ) -> Result<Authorization, Refusal> {
        let (url, cookie) = match find(headers, query, item) {
            FoundPass::Both { url, cookie } => (url, cookie),
            FoundPass::Stored(pass) => {
                return Ok(Authorization { entry: self.check(item, pass).await?, keep: None });
            }
            FoundPass::InUrl(pass) => {
                let entry = self.check(item, pass).await?;
                return Ok(Authorization { entry, keep: Some(pass.to_owned()) });
            }
        };
        let (new, kept) = (self.read(item, url).await, self.read(item, cookie).await);
        let prefers_url = match (&new, &kept) {
            (Ok(new), Ok(kept)) => new.user == kept.user && new.expires_at > kept.expires_at,
            (_, kept) => kept.is_err(),
        };
        let (new, kept) = ((new, url, true), (kept, cookie, false));
        let (first, second) = if prefers_url { (new, kept) } else { (kept, new) };
        match self.confirm(first).await {
            Err(Refusal::Revoked) if second.0.is_ok() => self.confirm(second).await,
            authorization => authorization,
        }
    }

    /// Runs the online check for an entry that was read from a pass.
    async fn confirm(
        &self,
        (entry, pass, keep): (Result<Entry, Refusal>, &str, bool),
    ) -> Result<Authorization, Refusal> {
        let entry = entry?;
        self.check_online(&entry, pass).await?;
        Ok(Authorization { entry, keep: keep.then(|| pass.to_owned()) })
    }

    /// Verifies a pass offline and returns its entry.
    async fn read(&self, item: &ItemId, pass: &str) -> Result<Entry, Refusal> {
        if pass.is_empty() {
            return Err(Refusal::Missing);
        }
        let (kid, algorithm) = Claims::header(pass)?;
        let (claims, signature_verified) = match self.0.keys.find(&kid).await {
            Ok(Some(key)) => (Claims::signed(pass, algorithm, &key)?, true),
            Ok(None) => return Err(Refusal::Invalid),
            Err(_) if self.fails_open() => (Claims::unsigned(pass)?, false),
            Err(_) => return Err(Refusal::Unavailable),
        };
        claims.entry(item, signature_verified, self.now_ms(), self.0.config.clock_skew)
    }

    /// Ends an entry, for example after the order was placed, so that daegi can admit the next user.
    /// Idempotent. Returns whether this call ended the entry.
    ///
    /// # Errors
    /// If daegi is unreachable. The entry then ends when the pass expires.
    pub async fn complete(&self, entry: &Entry) -> Result<bool, Error> {
        let internal = self.0.internal.as_ref().ok_or(Error::InternalUrlMissing)?;
        Ok(internal.complete(&entry.item, &entry.token()).await?)
    }

    /// Returns the URL of the item's waiting page.
    #[must_use]
    pub fn waiting_page(&self, item: &ItemId) -> String {
        format!("{}/wait/{item}", self.0.config.browser_url.trim_end_matches('/'))
    }

    /// Checks that the entry has not ended since the pass was signed. Does nothing unless `online` is
    /// set: passes are short-lived, so most services do without.
    async fn check_online(&self, entry: &Entry, pass: &str) -> Result<(), Refusal> {
        let Some(internal) = self.0.internal.as_ref().filter(|_| self.0.config.online) else {
            return Ok(());
        };
        match internal.has_entry(&entry.item, pass).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::Revoked),
            Err(error) => {
                tracing::warn!(%error, "online check of a pass failed");
                if self.fails_open() { Ok(()) } else { Err(Refusal::Unavailable) }
            }
        }
    }

    fn fails_open(&self) -> bool {
        self.0.config.on_unavailable == OnUnavailable::FailOpen
    }

    /// Counts a response of the service, and sends the report of the item in the background if one is due.
    pub(crate) fn record_response(&self, item: &ItemId, took: Duration, is_error: bool) {
        let Some(report) =
            self.0.health.as_ref().and_then(|health| health.add(item, took, is_error))
        else {
            return;
        };
        let (guard, item) = (self.clone(), item.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "a guard has no shutdown; the call ends with its timeout"
        )]
        tokio::spawn(async move {
            let Some(internal) = &guard.0.internal else { return };
            if let Err(error) = internal.report_health(&item, &report).await {
                tracing::debug!(%error, item.id = %item, "health report not sent, the next one follows");
            }
        });
    }

    pub(crate) fn now_ms(&self) -> Millis {
        self.0.config.clock.now_ms()
    }
}

fn is_https(address: &str) -> bool {
    address.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
}

impl Clock {
    /// Returns the system clock.
    #[must_use]
    pub fn system() -> Self {
        Self::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// Creates a clock from a function, for example one that a test controls.
    pub fn new(now_ms: impl Fn() -> Millis + Send + Sync + 'static) -> Self {
        Self(Arc::new(now_ms))
    }

    pub(crate) fn now_ms(&self) -> Millis {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now_ms())
    }
}
