//! Ports that are free now and that nobody is likely to take soon.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the range from which the kernel gives ports to outgoing connections, so that a server
/// which is stopped for a while finds its port free when it comes back.
const FIRST: u32 = 15_000;
const COUNT: u32 = 16_000;

/// Spreads processes that run at once, whose ids are neighbours, over the range.
const STRIDE: u32 = 97;

static TAKEN: AtomicU32 = AtomicU32::new(0);

/// A port of the loopback interface that nobody listens on, and that no other call of this
/// process gets. Another process may still be faster, so whoever binds it should be ready to ask
/// again.
///
/// # Panics
/// If no port of the whole range is free.
#[must_use]
pub fn free_port() -> u16 {
    let start = std::process::id().wrapping_mul(STRIDE);
    (0..COUNT)
        .map(|_| start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % COUNT + FIRST)
        .filter_map(|port| u16::try_from(port).ok())
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .unwrap_or_else(|| panic!("no free port on the loopback interface"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_not_given_again() {
        let first = free_port();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
        assert!((0..100).all(|_| free_port() != first));
    }
}
