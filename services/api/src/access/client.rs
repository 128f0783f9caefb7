use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use daegi_runtime::http::Source;

/// The longest user agent that is kept for a request, in bytes.
const MAX_AGENT: usize = 512;

/// Who sends a request, as far as the connection and its headers show it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Client {
    pub(super) address: Option<IpAddr>,
    pub(super) user_agent: Option<Box<[u8]>>,
}

impl Client {
    /// Returns the source, if the address is known.
    pub(crate) fn source(&self) -> Option<Source> {
        self.address.map(Source::new)
    }

    /// Returns the address, if it is known.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// `address` is that of the client, not of a proxy.
    pub(crate) fn new(address: Option<IpAddr>, headers: &HeaderMap) -> Self {
        let agent = headers.get(USER_AGENT).map(|agent| agent.as_bytes());
        let user_agent = agent.map(|agent| agent[..agent.len().min(MAX_AGENT)].into());
        Self { address, user_agent }
    }
}
