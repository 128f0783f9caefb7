//! Reproducible randomness.

/// The variable with the seed that a failed test has printed, or `random` for a new one.
const VARIABLE: &str = "DAEGI_TEST_SEED";

/// The seed without the variable: fixed, so that a test fails because of a change and not by
/// chance.
const DEFAULT_SEED: u64 = 1;

/// Returns a random number generator and prints its seed.
#[must_use]
pub fn seeded_rng(test: &str) -> fastrand::Rng {
    fastrand::Rng::with_seed(test_seed(test))
}

/// Returns and prints the seed of a test.
#[must_use]
#[expect(clippy::print_stderr, reason = "a failure can only be reproduced with its seed")]
#[expect(clippy::disallowed_methods, reason = "a seed is no configuration of daegi")]
#[expect(clippy::panic, reason = "an invalid seed must not fall back to the default")]
pub fn test_seed(test: &str) -> u64 {
    let seed = match std::env::var(VARIABLE).as_deref() {
        Err(_) => DEFAULT_SEED,
        Ok("random") => fastrand::u64(..),
        Ok(given) => given.parse().unwrap_or_else(|_| panic!("{VARIABLE} is a number or random")),
    };
    eprintln!("{test}: {VARIABLE}={seed}");
    seed
}
