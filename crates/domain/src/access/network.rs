use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::AccessError;

/// A network of IPv4 or IPv6 addresses: a prefix and its length. The other bits are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    address: IpAddr,
    length: u8,
}

/// The shortest prefixes of IPv4 and IPv6. A shorter one is rather a mistake, and would block most users.
const SHORTEST: (u8, u8) = (8, 16);

impl Network {
    /// Returns the network with this prefix that contains an address; `None` if the address has fewer bits.
    pub(super) fn containing(address: IpAddr, length: u8) -> Option<Self> {
        let (bits, width) = bits_of(address);
        let host_bits = u32::from(width.checked_sub(length)?);
        let masked = bits.checked_shr(host_bits).and_then(|bits| bits.checked_shl(host_bits));
        let masked = masked.unwrap_or(0);
        let address = match address {
            IpAddr::V4(_) => Ipv4Addr::from(masked as u32).into(),
            IpAddr::V6(_) => Ipv6Addr::from(masked).into(),
        };
        Some(Self { address, length })
    }

    /// The length of the prefix in bits.
    #[must_use]
    pub fn length(self) -> u8 {
        self.length
    }

    /// Whether it has IPv4 addresses.
    #[must_use]
    pub fn is_ipv4(self) -> bool {
        self.address.is_ipv4()
    }
}

/// Returns an address as a number, and how many bits it has.
fn bits_of(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u32::from(address).into(), 32),
        IpAddr::V6(address) => (address.into(), 128),
    }
}

impl FromStr for Network {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let (address, length) = match text.trim().split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text.trim(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| AccessError::Network)?;
        // An IPv4 address as IPv6 has no prefix of its own: requests are compared as IPv4.
        if address != address.to_canonical() && length.is_some() {
            return Err(AccessError::Network);
        }
        let address = address.to_canonical();
        let length = match length {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| AccessError::Network)?
            }
            Some(_) => return Err(AccessError::Network),
            None => bits_of(address).1,
        };
        let shortest = if address.is_ipv4() { SHORTEST.0 } else { SHORTEST.1 };
        if length < shortest {
            return Err(AccessError::LargeNetwork(length, shortest));
        }
        Self::containing(address, length).ok_or(AccessError::Network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl TryFrom<String> for Network {
    type Error = AccessError;

    fn try_from(text: String) -> Result<Self, AccessError> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

impl JsonSchema for Network {
    fn schema_name() -> Cow<'static, str> {
        "Network".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": 43, "examples": ["203.0.113.0/24"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_written_with_its_prefix_and_without_host_bits() {
        for (given, expected) in [
            ("203.0.113.9", "203.0.113.9/32"),
            ("203.0.113.9/24", "203.0.113.0/24"),
            ("255.255.255.255/8", "255.0.0.0/8"),
            ("2001:db8:1:2:3::9/64", "2001:db8:1:2::/64"),
            ("2001:db8::1", "2001:db8::1/128"),
            ("::ffff:192.0.2.1", "192.0.2.1/32"),
        ] {
            assert_eq!(given.parse::<Network>().unwrap().to_string(), expected);
        }
        for bad in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/-8",
            "10.0.0.0/+8",
            "a.b",
            "::1/129",
            "::ffff:10.0.0.0/104",
        ] {
            assert_eq!(bad.parse::<Network>(), Err(AccessError::Network), "{bad}");
        }
        assert_eq!("10.0.0.0/7".parse::<Network>(), Err(AccessError::LargeNetwork(7, 8)));
        assert_eq!("2001::/15".parse::<Network>(), Err(AccessError::LargeNetwork(15, 16)));
    }
}
