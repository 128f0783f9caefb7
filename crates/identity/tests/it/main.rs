//! Assertions and the keys of their issuer.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be built is a failed test")]

mod issuer;
mod keys;
mod vectors;
