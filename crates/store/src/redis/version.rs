//! Whether a server can run the scripts at all.

use crate::{Error, Result};

/// The oldest Redis that has every command the scripts use (ZMSCORE came with 6.2).
const NEEDED: (u32, u32) = (6, 2);
const NEEDED_TEXT: &str = "6.2";

/// Reads version and mode out of `INFO server`.
pub(super) fn check(info: &str, asked_as_cluster: bool) -> Result<()> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
    let found = field("redis_version:").unwrap_or("of unknown version").trim();
    let mut parts = found.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if version < NEEDED {
        return Err(Error::Version { found: found.into(), needed: NEEDED_TEXT });
    }
    match field("redis_mode:").map(str::trim) {
        Some("cluster") if !asked_as_cluster => {
            Err(Error::Address("the server is part of a cluster, give redis+cluster://".into()))
        }
        Some("sentinel") => {
            let told = "the server is a sentinel, give redis+sentinel:// and the service's name";
            Err(Error::Address(told.into()))
        }
        _ => Ok(()),
    }
}

/// Refuses a server whose `INFO memory` names a policy that evicts keys. `volatile-*` counts too:
/// ends of tickets and liveness have a TTL. A server that does not name its policy is accepted.
pub(super) fn check_eviction(info: &str) -> Result<()> {
    let policy = info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:"));
    match policy.map(str::trim) {
        None | Some("noeviction") => Ok(()),
        Some(policy) => Err(Error::Eviction { policy: policy.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_strange_servers_are_refused() {
        assert!(check("# Server\r\nredis_version:7.0.15\r\n", false).is_ok());
        assert!(check("redis_version:6.2.0\r\n", false).is_ok());
        for old in ["redis_version:6.0.16\r\n", "redis_version:5.0.7", "redis_version:x", ""] {
            assert!(matches!(check(old, false), Err(Error::Version { .. })), "{old:?}");
        }
    }

    #[test]
    fn a_server_that_evicts_keys_is_refused() {
        assert!(check_eviction("# Memory\r\nmaxmemory_policy:noeviction\r\n").is_ok());
        assert!(check_eviction("# Memory\r\nused_memory:1\r\n").is_ok());
        for policy in ["allkeys-lru", "volatile-ttl", "allkeys-random"] {
            let error = check_eviction(&format!("maxmemory_policy:{policy}\r\n")).unwrap_err();
            assert!(error.is_misconfigured() && error.to_string().contains(policy), "{error}");
        }
    }

    #[test]
    fn a_server_of_another_kind_is_named() {
        let node = "redis_version:7.0.15\r\nredis_mode:cluster\r\n";
        assert!(check(node, true).is_ok());
        assert!(check(node, false).unwrap_err().to_string().contains("redis+cluster://"));
        let sentinel = "redis_version:7.0.15\r\nredis_mode:sentinel\r\n";
        assert!(check(sentinel, false).unwrap_err().to_string().contains("redis+sentinel://"));
    }
}
