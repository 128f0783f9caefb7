//! Ports that are free and unlikely to be taken soon.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ephemeral port range of the kernel, so that a stopped server finds its port free when
/// it restarts.
const FIRST: u32 = 15_000;
const COUNT: u32 = 16_000;

/// Spreads concurrent processes, whose ids are close to each other, over the range.
const STRIDE: u32 = 97;

static TAKEN: AtomicU32 = AtomicU32::new(0);

/// Returns a free port of the loopback interface that no other call of this process gets. Another
/// process may still take it first, so callers retry with another port.
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
