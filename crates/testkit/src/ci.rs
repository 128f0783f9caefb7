//! Whether a skipped test may pass.

/// In CI a missing tool is a failure: a build that skips its tests must not be green.
#[expect(clippy::disallowed_methods, reason = "where tests run is no configuration of daegi")]
pub(crate) fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}
