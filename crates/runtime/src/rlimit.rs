//! The limit of open files. Every open connection is a file descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit, for this process and its children,
/// because many systems default to 1,024, and a listener accepts 20,000 connections by default.
/// Returns the new soft limit; `None` if it is unlimited.
pub fn raise_nofile_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let hard = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // If it fails, the process continues with the current limit.
    let _ = setrlimit(Resource::Nofile, hard);
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_limit() {
        assert_eq!(raise_nofile_limit(), getrlimit(Resource::Nofile).maximum);
    }
}
