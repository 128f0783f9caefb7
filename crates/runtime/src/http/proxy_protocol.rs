//! The PROXY protocol, versions 1 and 2: the header with which a proxy names the client of a connection.
//!
//! Specification: <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>. A trusted proxy sends the header before
//! anything else, so that a missing one is an error: a client behind it could otherwise send a header of its own. The
//! extensions of version 2 (TLVs) are skipped.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::budget::FREE_BYTES;

/// Bytes of the signature of version 2. No header of version 1 is shorter.
const SIGNATURE_LEN: usize = 12;
const SIGNATURE: [u8; SIGNATURE_LEN] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Maximum length of a header of version 1, with its line end.
const MAX_V1: usize = 107;
/// Maximum length of the addresses and extensions of version 2. Load balancers send some 100 bytes.
const MAX_V2: usize = FREE_BYTES;
/// Lengths of the addresses of version 2: two addresses and two ports.
const IPV4_LEN: usize = 12;
const IPV6_LEN: usize = 36;

/// The client of a connection, as the proxy named it; `None` if the proxy opened the connection for itself, such as for
/// a health check, or does not know the client.
type NamedClient = Option<SocketAddr>;

/// Reads the header and nothing after it.
///
/// # Errors
/// If the connection does not begin with a valid header.
pub(super) async fn read_header(stream: &mut TcpStream) -> io::Result<NamedClient> {
    let mut start = [0; SIGNATURE_LEN];
    stream.read_exact(&mut start).await?;
    if start != SIGNATURE {
        let line = read_line(stream, &start).await?;
        return parse_v1(&line).ok_or_else(invalid);
    }
    let mut fixed = [0; 4];
    stream.read_exact(&mut fixed).await?;
    let [version, family, high, low] = fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > MAX_V2 {
        return Err(invalid());
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    parse_v2(version, family, &rest).ok_or_else(invalid)
}

/// Reads up to the end of the line, and nothing after it, because a request follows.
async fn read_line(stream: &mut TcpStream, start: &[u8]) -> io::Result<Vec<u8>> {
    let mut line = start.to_vec();
    let mut next = [0; MAX_V1];
    while !line.ends_with(b"\n") {
        let left = MAX_V1 - line.len();
        if left == 0 || !line.starts_with(b"PROXY ") {
            return Err(invalid());
        }
        // What was peeked is read afterwards, so that each peek waits for further bytes.
        let peeked = stream.peek(&mut next[..left]).await?;
        if peeked == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let end = next[..peeked].iter().position(|byte| *byte == b'\n');
        let part = &mut next[..end.map_or(peeked, |end| end + 1)];
        stream.read_exact(part).await?;
        line.extend_from_slice(part);
    }
    Ok(line)
}

/// Parses `PROXY TCP4 <client> <proxy> <client's port> <proxy's port>` and its line end. Returns `None` if that is not
/// what the line is.
fn parse_v1(line: &[u8]) -> Option<NamedClient> {
    let line = std::str::from_utf8(line).ok()?.strip_prefix("PROXY ")?.strip_suffix("\r\n")?;
    let (family, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut fields = rest.split(' ');
    let mut address = || -> Option<IpAddr> {
        let text = fields.next()?;
        match family {
            "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::from),
            "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::from),
            _ => None,
        }
    };
    if family == "UNKNOWN" {
        // The rest of the line is ignored.
        return Some(None);
    }
    let (client, _proxy) = (address()?, address()?);
    let (client_port, _proxy_port) = (port(fields.next()?)?, port(fields.next()?)?);
    fields.next().is_none().then_some(Some(SocketAddr::new(client, client_port)))
}

fn port(text: &str) -> Option<u16> {
    text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Parses what follows the signature of version 2. Returns `None` if it is invalid.
fn parse_v2(version: u8, family: u8, rest: &[u8]) -> Option<NamedClient> {
    match (version, family) {
        // LOCAL: the addresses are ignored.
        (0x20, _) => Some(None),
        (0x21, 0x11) => {
            let [a, b, c, d, _, _, _, _, high, low, _, _]: [u8; IPV4_LEN] =
                rest.get(..IPV4_LEN)?.try_into().ok()?;
            let client = Ipv4Addr::new(a, b, c, d).into();
            Some(Some(SocketAddr::new(client, u16::from_be_bytes([high, low]))))
        }
        (0x21, 0x21) => {
            let addresses: [u8; IPV6_LEN] = rest.get(..IPV6_LEN)?.try_into().ok()?;
            let client: [u8; 16] = addresses[..16].try_into().ok()?;
            let port = u16::from_be_bytes([addresses[32], addresses[33]]);
            Some(Some(SocketAddr::new(Ipv6Addr::from(client).into(), port)))
        }
        // Unspecified, datagrams and Unix sockets: the proxy does not know an address of TCP.
        (0x21, 0x00 | 0x12 | 0x22 | 0x31 | 0x32) => Some(None),
        _ => None,
    }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the connection begins with no valid PROXY header")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a header of version 1.
    fn v1(client: SocketAddr, proxy: SocketAddr) -> String {
        let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
        let (ip, port) = (client.ip(), client.port());
        format!("PROXY {family} {ip} {} {port} {}\r\n", proxy.ip(), proxy.port())
    }

    /// Returns what follows the fixed part of a header of version 2.
    fn v2(client: SocketAddr, proxy: SocketAddr, extensions: &[u8]) -> (u8, Vec<u8>) {
        let octets = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let ports = [client.port().to_be_bytes(), proxy.port().to_be_bytes()].concat();
        let parts = [octets(client.ip()), octets(proxy.ip()), ports, extensions.to_vec()];
        (if client.is_ipv4() { 0x11 } else { 0x21 }, parts.concat())
    }

    #[test]
    fn malformed_lines_are_refused() {
        let good = "PROXY TCP4 203.0.113.9 10.0.0.1 4711 443\r\n";
        assert_eq!(parse_v1(good.as_bytes()), Some(Some("203.0.113.9:4711".parse().unwrap())));
        for known_none in ["PROXY UNKNOWN\r\n", "PROXY UNKNOWN ffff::1 x y z\r\n"] {
            assert_eq!(parse_v1(known_none.as_bytes()), Some(None), "{known_none}");
        }
        for bad in [
            "PROXY TCP4 203.0.113.9 10.0.0.1 4711 443\n",
            "PROXY TCP4 203.0.113.9 10.0.0.1 4711\r\n",
            "PROXY TCP4 203.0.113.9 10.0.0.1 4711 443 1\r\n",
            "PROXY TCP4  203.0.113.9 10.0.0.1 4711 443\r\n",
            "PROXY TCP4 203.0.113.9 10.0.0.1 +471 443\r\n",
            "PROXY TCP4 203.0.113.9 10.0.0.1 65536 443\r\n",
            "PROXY TCP4 203.0.113.9 10.0.0.1  443\r\n",
            "PROXY TCP4 203.0.113.256 10.0.0.1 4711 443\r\n",
            "PROXY TCP6 203.0.113.9 10.0.0.1 4711 443\r\n",
            "PROXY TCP4 ::1 ::1 4711 443\r\n",
            "PROXY UDP4 203.0.113.9 10.0.0.1 4711 443\r\n",
            "proxy TCP4 203.0.113.9 10.0.0.1 4711 443\r\n",
            "PROXY \r\n",
            "GET / HTTP/1.1\r\n",
        ] {
            assert_eq!(parse_v1(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn version_2_names_no_client_for_local_connections_and_other_families() {
        let (family, rest) = v2("1.2.3.4:5".parse().unwrap(), "6.7.8.9:1".parse().unwrap(), b"");
        assert_eq!(parse_v2(0x20, family, &rest), Some(None), "LOCAL");
        for family in [0x00, 0x12, 0x22, 0x31, 0x32] {
            assert_eq!(parse_v2(0x21, family, &rest), Some(None), "{family:#x}");
        }
        for (version, family) in [(0x21, 0x41), (0x21, 0x13), (0x22, 0x11), (0x11, 0x11)] {
            assert_eq!(parse_v2(version, family, &rest), None, "{version:#x} {family:#x}");
        }
        assert_eq!(parse_v2(0x21, 0x11, &rest[..11]), None, "too short");
        assert_eq!(parse_v2(0x21, 0x21, &rest), None, "too short for IPv6");
    }

    proptest! {
        #[test]
        fn every_address_is_read_back(
            ips in prop_oneof![
                any::<[[u8; 4]; 2]>().prop_map(|ips| ips.map(IpAddr::from)),
                any::<[[u8; 16]; 2]>().prop_map(|ips| ips.map(IpAddr::from)),
            ],
            ports in any::<[u16; 2]>(),
            extensions in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let [client, proxy] = [0, 1].map(|side| SocketAddr::new(ips[side], ports[side]));
            prop_assert_eq!(parse_v1(v1(client, proxy).as_bytes()), Some(Some(client)));
            prop_assert!(v1(client, proxy).len() <= MAX_V1);
            let (family, rest) = v2(client, proxy, &extensions);
            prop_assert_eq!(parse_v2(0x21, family, &rest), Some(Some(client)));
        }

        #[test]
        fn no_bytes_panic(line in prop::collection::vec(any::<u8>(), 0..120), fixed in any::<[u8; 2]>()) {
            let _ = parse_v1(&line);
            let _ = parse_v1(&[b"PROXY ", &line[..], b"\r\n"].concat());
            let _ = parse_v2(fixed[0], fixed[1], &line);
        }
    }
}
