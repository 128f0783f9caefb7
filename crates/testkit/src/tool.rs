//! Programs of the system that some tests need.

use std::path::PathBuf;
use std::process::Command;

use crate::ci::in_ci;

/// Where a program is, or `None` after one loud line where it is not installed.
///
/// # Panics
/// If it is missing where `CI=true`: a build that skips its tests must not be green.
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
#[must_use]
pub fn tool_or_loud(name: &str) -> Option<PathBuf> {
    // Servers are often where only root looks.
    let look = ["-c", "PATH=$PATH:/usr/sbin command -v \"$0\"", name];
    let found = Command::new("sh").args(look).output().ok().filter(|found| found.status.success());
    if let Some(found) = found {
        return Some(PathBuf::from(String::from_utf8_lossy(&found.stdout).trim()));
    }
    assert!(!in_ci(), "{name} is missing");
    eprintln!("!!! SKIPPED: {name} is missing, this test has checked NOTHING !!!");
    None
}
