//! Randomness that can be had again.

/// Set it to the seed that a failed test has printed.
const VARIABLE: &str = "DAEGI_TEST_SEED";

/// A source of random numbers, and one line that says how to have the same ones again.
#[must_use]
#[expect(clippy::print_stderr, reason = "whoever looks at a failure needs its seed")]
#[expect(clippy::disallowed_methods, reason = "a seed is no configuration of daegi")]
pub fn chance(test: &str) -> fastrand::Rng {
    let given = std::env::var(VARIABLE).ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("{test}: {VARIABLE}={seed}");
    fastrand::Rng::with_seed(seed)
}
