//! Failed sign-ins: logged, counted, and answered with a delay that grows with the failures of one
//! address.
//!
//! Only the answer to a wrong token is delayed. A correct token is never delayed, so an attacker
//! cannot lock out operators who share the attacker's address, such as that of a proxy.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::metrics::counter;
use tokio::time::Instant;

use super::COMPONENT;
use crate::metrics;

/// Delay of the answer to the first wrong token of an address; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// The longest delay. It limits one connection to about one guess per 3 s.
const MAX_DELAY: Duration = Duration::from_secs(3);

/// Time after the last failure of an address at which its count restarts at 0.
const RETENTION: Duration = Duration::from_secs(15 * 60);

/// Maximum number of addresses. Beyond it the one whose last failure is oldest is dropped.
const MAX_ADDRESSES: usize = 1_024;

/// Number of failures of one address that are all logged. Of later ones only those are logged whose
/// number is a power of two, so that an attacker cannot fill the log.
const LOGGED: u32 = 10;

/// The failed sign-ins of this process, by address.
#[derive(Debug, Default)]
pub(super) struct SignIns(Mutex<HashMap<IpAddr, Failures>>);

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl SignIns {
    /// Registers the metric at the start, so that a query can distinguish 0 from absent.
    pub(super) fn new() -> Self {
        for reason in ["missing", "wrong"] {
            counter!(metrics::SIGN_INS_FAILED, "reason" => reason).increment(0);
        }
        Self::default()
    }

    /// Counts a call without a token. It is not a guess, so it is neither logged nor delayed.
    pub(super) fn missing(&self) {
        counter!(metrics::SIGN_INS_FAILED, "reason" => "missing").increment(1);
    }

    /// Counts and logs a wrong token; returns how long to delay the answer.
    pub(super) fn wrong(&self, peer: Option<IpAddr>) -> Duration {
        counter!(metrics::SIGN_INS_FAILED, "reason" => "wrong").increment(1);
        let component = COMPONENT;
        let Some(peer) = peer else {
            tracing::warn!(component, "admin sign-in failed: wrong token");
            return Duration::ZERO;
        };
        let failures = self.count(network(peer), Instant::now());
        let delay = delay_after(failures);
        if failures <= LOGGED || failures.is_power_of_two() {
            let delay_ms = delay.as_millis();
            tracing::warn!(component, %peer, failures, delay_ms, "admin sign-in failed: wrong token");
        }
        delay
    }

    fn count(&self, network: IpAddr, now: Instant) -> u32 {
        let mut addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !addresses.contains_key(&network) && addresses.len() >= MAX_ADDRESSES {
            let oldest = addresses.iter().min_by_key(|(_, failures)| failures.last);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                addresses.remove(&oldest);
            }
        }
        let failures = addresses.entry(network).or_insert(Failures { count: 0, last: now });
        if now.duration_since(failures.last) > RETENTION {
            failures.count = 0;
        }
        *failures = Failures { count: failures.count.saturating_add(1), last: now };
        failures.count
    }
}

fn delay_after(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_DELAY.saturating_mul(doubled).min(MAX_DELAY)
}

/// Returns the address, or its /64 network for IPv6, because one client usually has all addresses of
/// a /64 network.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn the_delay_grows_to_its_limit_and_is_reset() {
        let sign_ins = SignIns::new();
        let peer = Some(address("192.0.2.1"));
        let delays: Vec<_> = (0..40).map(|_| sign_ins.wrong(peer).as_millis()).collect();
        assert_eq!(delays[..7], [100, 200, 400, 800, 1600, 3000, 3000]);
        assert!(delays[6..].iter().all(|delay| *delay == 3000));
        assert_eq!(sign_ins.wrong(Some(address("192.0.2.2"))), FIRST_DELAY, "another address");
        tokio::time::advance(RETENTION + Duration::from_secs(1)).await;
        assert_eq!(sign_ins.wrong(peer), FIRST_DELAY);
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_are_bounded_and_the_busiest_stay() {
        let sign_ins = SignIns::new();
        let guesser = address("198.51.100.7");
        for index in 0..10 * u32::try_from(MAX_ADDRESSES).unwrap() {
            sign_ins.wrong(Some(std::net::Ipv4Addr::from(index).into()));
            sign_ins.wrong(Some(guesser));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(sign_ins.0.lock().unwrap().len(), MAX_ADDRESSES);
        assert_eq!(sign_ins.wrong(Some(guesser)), MAX_DELAY);
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_count_together() {
        assert_eq!(network(address("2001:db8::1")), network(address("2001:db8::ffff:2")));
        assert_ne!(network(address("2001:db8::1")), network(address("2001:db8:0:1::1")));
        assert_eq!(network(address("::ffff:192.0.2.1")), address("192.0.2.1"));
    }
}
