//! Asks another process of this machine whether it is ready.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Less than container engines wait before they give up on the whole check.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks the process that listens at this internal address.
///
/// # Errors
/// If it is not there or not ready, with its own words.
pub(crate) fn ask(internal: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&within_reach(internal), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200") {
        return Ok(());
    }
    let words = answer.split("\r\n\r\n").nth(1).unwrap_or("no answer");
    Err(io::Error::other(words.to_owned()))
}

/// Who listens everywhere also listens here.
fn within_reach(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}
