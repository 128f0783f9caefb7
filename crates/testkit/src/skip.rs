//! What happens to a test whose program is not installed.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::Command;

/// Skips a test with one line on stderr that cannot be overlooked.
///
/// # Panics
/// If `CI=true`: a build that skips its tests must not be green.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
#[expect(clippy::disallowed_methods, reason = "where tests run is no configuration of daegi")]
pub(crate) fn skip_or_panic<T>(missing: impl Display) -> Option<T> {
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!in_ci, "{missing}");
    eprintln!("!!! SKIPPED: {missing}, this test has checked NOTHING !!!");
    None
}

/// Returns the path of a program, or `None` if it is not installed.
///
/// # Panics
/// If it is not installed and `CI=true`.
#[must_use]
pub fn tool_or_skip(name: &str) -> Option<PathBuf> {
    // Servers are often in /usr/sbin, which is not in the path of ordinary users.
    let search = ["-c", "PATH=$PATH:/usr/sbin command -v \"$0\"", name];
    let found =
        Command::new("sh").args(search).output().ok().filter(|found| found.status.success());
    let path = |found: std::process::Output| String::from_utf8_lossy(&found.stdout).trim().into();
    found.map(path).or_else(|| skip_or_panic(format_args!("{name} is not installed")))
}
