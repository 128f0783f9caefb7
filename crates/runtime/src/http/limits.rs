//! The limits of one listener, and a counter of what they rejected.

use std::sync::Arc;
use std::time::Duration;

use metrics::counter;

use super::TrustedProxies;
use crate::config::Config;

/// Connections and requests that a listener's limits refused, by `reason`: `connections` (the limit
/// was reached, a new connection had to wait), `head` and `body` (over the byte budget),
/// `head_timeout` (a head that did not arrive in time), `proxy_header` (a trusted proxy sent no valid header of the PROXY
/// protocol in time).
pub const REFUSED: &str = "daegi_http_refused_total";

/// What one listener accepts.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Open connections; more wait in the kernel's backlog.
    pub connections: usize,
    /// Bytes held for incomplete requests of all connections together, beyond
    /// [`super::FREE_BYTES`] of each connection.
    pub request_buffer: usize,
    /// How long a client may take from the first byte of a request's head to its last; for the first
    /// request from the connection's start. Also how long a connection may be idle if more than
    /// half of the connections are in use.
    pub header_read: Duration,
    /// How long a connection may be idle between two requests otherwise.
    pub idle: Duration,
    /// How old a connection may get; each draws between half of it and the whole.
    pub max_age: Duration,
    /// How many requests a connection may carry; each draws between half of them and all.
    pub max_requests: u32,
    /// How long requests in flight may take after the shutdown.
    pub drain: Duration,
    /// Proxies that begin each connection with a header of the PROXY protocol, which names the client.
    pub proxies: Option<Arc<TrustedProxies>>,
}

/// Which limit refused something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Connections,
    Head,
    Body,
    HeadTimeout,
    ProxyHeader,
}

impl Limits {
    /// Returns the limits of the public listener, which is behind the proxies.
    #[must_use]
    pub fn public(config: &Config) -> Self {
        let proxies = config.proxy_protocol.then(|| Arc::new(config.trusted_proxies.clone()));
        Self { proxies, ..Self::from(config) }
    }

    /// Default of [`Self::connections`].
    pub const CONNECTIONS: u32 = 20_000;

    /// Default of [`Self::request_buffer`]: 16 MiB.
    pub const REQUEST_BUFFER: u64 = 16 * 1024 * 1024;

    /// Default of [`Self::max_age`] in milliseconds: a minute after a scale-out all pods have load.
    pub const MAX_AGE_MS: u64 = 60_000;

    /// Default of [`Self::max_requests`]: a new connection costs as much as a few polls, which is
    /// negligible compared to this many requests.
    pub const MAX_REQUESTS: u32 = 10_000;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: Self::CONNECTIONS as usize,
            request_buffer: Self::REQUEST_BUFFER as usize,
            header_read: Duration::from_secs(10),
            // Load balancers keep idle connections for 60 s by default, some for 600 s.
            idle: Duration::from_secs(620),
            max_age: Duration::from_millis(Self::MAX_AGE_MS),
            max_requests: Self::MAX_REQUESTS,
            drain: Duration::from_secs(10),
            proxies: None,
        }
    }
}

impl From<&Config> for Limits {
    fn from(config: &Config) -> Self {
        Self {
            connections: config.max_connections,
            request_buffer: config.request_buffer_bytes,
            max_age: config.connection_age,
            max_requests: config.connection_requests,
            drain: config.drain,
            ..Self::default()
        }
    }
}

impl Refused {
    const ALL: [Self; 5] =
        [Self::Connections, Self::Head, Self::Body, Self::HeadTimeout, Self::ProxyHeader];

    const fn reason(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Head => "head",
            Self::Body => "body",
            Self::HeadTimeout => "head_timeout",
            Self::ProxyHeader => "proxy_header",
        }
    }

    pub(super) fn count(self) {
        counter!(REFUSED, "reason" => self.reason()).increment(1);
    }

    /// Registers all reasons at the start, so that a query can distinguish 0 from absent.
    pub(super) fn register() {
        for refused in Self::ALL {
            counter!(REFUSED, "reason" => refused.reason()).increment(0);
        }
    }
}
