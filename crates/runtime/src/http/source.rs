//! Where a request comes from: the address of the client, also behind trusted proxies.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::http::HeaderMap;
use axum::http::header::FORWARDED;
use ipnet::IpNet;

/// The header of most proxies: a list of addresses, to which each proxy appends the one it received from.
const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// The source of a request: an IPv4 address, or the first 64 bits of an IPv6 address, because one subscriber
/// has at least a /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source(IpAddr);

/// The networks of the proxies in front of this process. Only they may name the address of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    header: ForwardedHeader,
}

/// The header in which the trusted proxies name the client. Only one is read: a proxy passes the other one on
/// as the client sent it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// The text is not a list of addresses or networks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be addresses or networks such as 10.0.0.0/8,192.168.1.7,2001:db8::/32")]
pub struct InvalidNetworks;

impl Source {
    /// Returns the source with this address.
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.into()),
            IpAddr::V6(address) => {
                let subnet = u128::from(address) & !u128::from(u64::MAX);
                Self(Ipv6Addr::from(subnet).into())
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(f),
            IpAddr::V6(address) => write!(f, "{address}/64"),
        }
    }
}

impl TrustedProxies {
    /// Trusts the proxies in these networks to name the client in this header.
    #[must_use]
    pub fn new(networks: Vec<IpNet>, header: ForwardedHeader) -> Self {
        Self { networks, header }
    }

    /// Parses a list of addresses and networks, separated by commas.
    ///
    /// # Errors
    /// If one of them is neither.
    pub fn parse_networks(text: &str) -> Result<Vec<IpNet>, InvalidNetworks> {
        let network = |text: &str| {
            let address = || text.parse::<IpAddr>().map(IpNet::from);
            text.parse::<IpNet>().or_else(|_| address()).map_err(|_| InvalidNetworks)
        };
        text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(network).collect()
    }

    /// Returns the source of a request that `peer` sent: the last address in the chain of proxies that is
    /// not itself a trusted proxy. What stands before it in the header may be invented by the client.
    #[must_use]
    pub fn source(&self, peer: IpAddr, headers: &HeaderMap) -> Source {
        Source::new(self.client(peer, headers))
    }

    /// Returns the address of [`TrustedProxies::source`], with all bits of an IPv6 address.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.networks.is_empty() {
            let mut hops = self.hops(headers).into_iter().rev();
            while self.is_trusted(client) {
                // A hop that names no address ends the chain: the proxy that added it is the source.
                let Some(Some(hop)) = hops.next() else { break };
                client = hop.to_canonical();
            }
        }
        client
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }

    /// Returns the addresses that the header names, first hop first; `None` for one that is hidden or invalid.
    fn hops(&self, headers: &HeaderMap) -> Vec<Option<IpAddr>> {
        let values = |name: &str| -> Vec<&str> {
            let texts = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or(""));
            texts.flat_map(|text| text.split(',')).collect()
        };
        match self.header {
            ForwardedHeader::XForwardedFor => {
                values(X_FORWARDED_FOR).into_iter().map(node_address).collect()
            }
            ForwardedHeader::Forwarded => {
                values(FORWARDED.as_str()).into_iter().map(forwarded_for).collect()
            }
        }
    }
}

/// Returns the address of the parameter `for` of one element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let mut nodes = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("for"));
    node_address(nodes.next()?.1)
}

/// Reads `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` and `"[2001:db8::1]:4711"`.
fn node_address(text: &str) -> Option<IpAddr> {
    let text = text.trim().trim_matches('"');
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let with_port = || SocketAddr::from_str(text).map(|address| address.ip());
    bare.parse().or_else(|_| with_port()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(networks: &str, header: ForwardedHeader) -> TrustedProxies {
        TrustedProxies::new(TrustedProxies::parse_networks(networks).unwrap(), header)
    }

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| value.parse().unwrap());
        values.map(|value| (axum::http::HeaderName::from_static(name), value)).collect()
    }

    fn source(proxies: &TrustedProxies, peer: &str, headers: &HeaderMap) -> String {
        proxies.source(peer.parse().unwrap(), headers).to_string()
    }

    #[test]
    fn the_source_is_the_last_address_that_no_trusted_proxy_has() {
        let trusted = proxies("10.0.0.0/8, 2001:db8::7", ForwardedHeader::XForwardedFor);
        let sent = headers(X_FORWARDED_FOR, &["1.1.1.1, 203.0.113.9", "10.2.0.1"]);
        assert_eq!(source(&trusted, "10.0.0.1", &sent), "203.0.113.9");
        assert_eq!(source(&trusted, "::ffff:10.0.0.1", &sent), "203.0.113.9");
        assert_eq!(source(&trusted, "198.51.100.1", &sent), "198.51.100.1", "not a proxy");
        assert_eq!(source(&trusted, "2001:db8::7", &sent), "203.0.113.9");
        assert_eq!(source(&trusted, "10.0.0.1", &HeaderMap::new()), "10.0.0.1");
        let only_proxies = headers(X_FORWARDED_FOR, &["10.1.1.1"]);
        assert_eq!(source(&trusted, "10.0.0.1", &only_proxies), "10.1.1.1");
        let invalid = headers(X_FORWARDED_FOR, &["203.0.113.9, unknown, 10.3.0.1"]);
        assert_eq!(source(&trusted, "10.0.0.1", &invalid), "10.3.0.1");
        assert_eq!(source(&TrustedProxies::default(), "10.0.0.1", &sent), "10.0.0.1");
    }

    #[test]
    fn only_the_configured_header_is_read() {
        let trusted = proxies("10.0.0.1", ForwardedHeader::Forwarded);
        let invented = headers(X_FORWARDED_FOR, &["203.0.113.9"]);
        assert_eq!(source(&trusted, "10.0.0.1", &invented), "10.0.0.1");
        let sent = headers(
            "forwarded",
            &[r#"for=1.1.1.1, proto=https; For="[2001:db8:1:2:3::9]:4711";by=x, for=10.0.0.1:80"#],
        );
        assert_eq!(source(&trusted, "10.0.0.1", &sent), "2001:db8:1:2::/64");
    }

    #[test]
    fn addresses_of_one_ipv6_subnet_are_one_source() {
        let of = |text: &str| Source::new(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[test]
    fn networks_that_are_none_are_refused() {
        assert_eq!(TrustedProxies::parse_networks(" ").unwrap(), []);
        for bad in ["10.0.0.0/33", "ingress", "10.0.0.1;10.0.0.2"] {
            assert_eq!(TrustedProxies::parse_networks(bad), Err(InvalidNetworks), "{bad}");
        }
    }
}
