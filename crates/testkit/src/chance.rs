//! Randomness that can be had again.

/// The seed that a failed test has printed, or `random` to look where nobody has looked yet.
const VARIABLE: &str = "DAEGI_TEST_SEED";

/// What everybody gets who does not ask: a change turns a test red, not bad luck.
const USUAL: u64 = 1;

/// A source of random numbers, and one line that says how to have the same ones again.
#[must_use]
pub fn chance(test: &str) -> fastrand::Rng {
    fastrand::Rng::with_seed(seed(test))
}

/// The seed of a test that makes its own random numbers of it.
#[must_use]
#[expect(clippy::print_stderr, reason = "whoever looks at a failure needs its seed")]
#[expect(clippy::disallowed_methods, reason = "a seed is no configuration of daegi")]
#[expect(clippy::panic, reason = "a seed that cannot be read must not pass for the usual one")]
pub fn seed(test: &str) -> u64 {
    let seed = match std::env::var(VARIABLE).as_deref() {
        Err(_) => USUAL,
        Ok("random") => fastrand::u64(..),
        Ok(given) => given.parse().unwrap_or_else(|_| panic!("{VARIABLE} is a number or random")),
    };
    eprintln!("{test}: {VARIABLE}={seed}");
    seed
}
