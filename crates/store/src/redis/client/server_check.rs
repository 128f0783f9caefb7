//! The requirements for a server.

use crate::{Error, Result};

/// The oldest Redis with every command the scripts use (`ZMSCORE` came with 6.2).
const MIN_VERSION: (u32, u32) = (6, 2);
const MIN_VERSION_TEXT: &str = "6.2";

/// Checks version and mode in `INFO server`.
pub(super) fn check_version(info: &str, is_cluster_url: bool) -> Result<()> {
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name));
    let found = field("redis_version:").unwrap_or("of unknown version").trim();
    let mut parts = found.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if version < MIN_VERSION {
        return Err(Error::UnsupportedVersion { found: found.into(), needed: MIN_VERSION_TEXT });
    }
    match field("redis_mode:").map(str::trim) {
        Some("cluster") if !is_cluster_url => {
            Err(Error::InvalidUrl("the server is part of a cluster, give redis+cluster://".into()))
        }
        Some("sentinel") => {
            let reason = "the server is a sentinel, give redis+sentinel:// and the service's name";
            Err(Error::InvalidUrl(reason.into()))
        }
        _ => Ok(()),
    }
}

/// Rejects a server whose `INFO memory` has a policy that evicts keys. `volatile-*` counts too:
/// ends of tickets and liveness have a TTL. A server without this field is accepted.
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
    fn servers_that_are_too_old_are_rejected() {
        assert!(check_version("# Server\r\nredis_version:7.0.15\r\n", false).is_ok());
        assert!(check_version("redis_version:6.2.0\r\n", false).is_ok());
        for old in ["redis_version:6.0.16\r\n", "redis_version:5.0.7", "redis_version:x", ""] {
            assert!(
                matches!(check_version(old, false), Err(Error::UnsupportedVersion { .. })),
                "{old:?}"
            );
        }
    }

    #[test]
    fn a_server_that_evicts_keys_is_rejected() {
        assert!(check_eviction("# Memory\r\nmaxmemory_policy:noeviction\r\n").is_ok());
        assert!(check_eviction("# Memory\r\nused_memory:1\r\n").is_ok());
        for policy in ["allkeys-lru", "volatile-ttl", "allkeys-random"] {
            let error = check_eviction(&format!("maxmemory_policy:{policy}\r\n")).unwrap_err();
            assert!(error.is_misconfigured() && error.to_string().contains(policy), "{error}");
        }
    }

    #[test]
    fn the_error_says_which_url_another_topology_needs() {
        let node = "redis_version:7.0.15\r\nredis_mode:cluster\r\n";
        assert!(check_version(node, true).is_ok());
        assert!(check_version(node, false).unwrap_err().to_string().contains("redis+cluster://"));
        let sentinel = "redis_version:7.0.15\r\nredis_mode:sentinel\r\n";
        assert!(
            check_version(sentinel, false).unwrap_err().to_string().contains("redis+sentinel://")
        );
    }
}
