//! Probes the readiness of another process of this machine.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Timeout of the connect and of each read: below the default health-check timeouts of container
/// engines (3 s and more).
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Requests `/readyz` from the process that listens at this internal address.
///
/// # Errors
/// If it cannot be reached or is not ready, with the body of its response.
pub(crate) fn probe(internal: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&loopback_if_unspecified(internal), PROBE_TIMEOUT)?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    if response.starts_with("HTTP/1.1 200") {
        return Ok(());
    }
    let body = response.split("\r\n\r\n").nth(1).unwrap_or("no response");
    Err(io::Error::other(body.to_owned()))
}

/// Replaces the unspecified address, which is no target, by loopback.
fn loopback_if_unspecified(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}
