//! Every open connection is a file descriptor.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process and its children open as many files as the system allows. Many systems give a
/// process 1,024 unless it asks for more, and a pod is to hold ten thousand streams. Returns how
/// many it may open now; nothing if there is no limit.
pub fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // If it is refused, the process goes on with what it has.
    let _ = setrlimit(Resource::Nofile, most);
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_open_as_much_as_the_system_allows() {
        assert_eq!(raise(), getrlimit(Resource::Nofile).maximum);
    }
}
