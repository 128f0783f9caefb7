//! Connections and their limits.

use std::time::Duration;

use ::redis::aio::{ConnectionManager, ConnectionManagerConfig};
use ::redis::{Client, ErrorKind, RedisError};
use rslock::LockManager;

use super::keys;
use crate::lease::Leases;
use crate::{Epoch, Error, Result};

/// The oldest Redis that has every command the scripts use (ZMSCORE came with 6.2).
const NEEDED: (u32, u32) = (6, 2);
const NEEDED_TEXT: &str = "6.2";

/// A person is told "try again" within a second, so the store gets less than that.
const ANSWER_WITHIN: Duration = Duration::from_millis(700);
const RECONNECT_WITHIN: Duration = Duration::from_millis(500);

pub(super) async fn connect(url: &str) -> Result<(ConnectionManager, Leases)> {
    let client = Client::open(url).map_err(|error| Error::Address(error.to_string().into()))?;
    let config = ConnectionManagerConfig::new()
        .set_response_timeout(Some(ANSWER_WITHIN))
        .set_connection_timeout(Some(ANSWER_WITHIN))
        .set_number_of_retries(1)
        .set_max_delay(RECONNECT_WITHIN);
    let connection =
        ConnectionManager::new_with_config(client.clone(), config).await.map_err(error)?;
    let mut manager = LockManager::from_clients(vec![client]);
    // One attempt: whether to try again is the scheduler's decision.
    manager.set_retry(1, Duration::from_millis(1));
    Ok((connection, Leases::Redis { manager: Box::new(manager), key: keys::lease().to_owned() }))
}

/// Decides once for the crate what an error of the library means.
pub(super) fn error(error: RedisError) -> Error {
    match error.kind() {
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Error::corrupt(error.to_string()),
        ErrorKind::InvalidClientConfig | ErrorKind::AuthenticationFailed => {
            Error::Address(error.to_string().into())
        }
        _ if error.code() == Some("STALE") => Error::StaleEpoch(0),
        _ => Error::Unavailable(error.to_string().into()),
    }
}

/// Names the epoch that was refused.
pub(super) fn at(epoch: Epoch, error: Error) -> Error {
    match error {
        Error::StaleEpoch(_) => Error::StaleEpoch(epoch.0),
        other => other,
    }
}

/// Reads `redis_version` out of INFO.
pub(super) fn check_version(info: &str) -> Result<()> {
    let found = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    let found = found.unwrap_or("of unknown version").trim();
    let mut parts = found.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if version >= NEEDED {
        Ok(())
    } else {
        Err(Error::Version { found: found.into(), needed: NEEDED_TEXT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_strange_servers_are_refused() {
        assert!(check_version("# Server\r\nredis_version:7.0.15\r\n").is_ok());
        assert!(check_version("redis_version:6.2.0\r\n").is_ok());
        for old in ["redis_version:6.0.16\r\n", "redis_version:5.0.7", "redis_version:x", ""] {
            assert!(matches!(check_version(old), Err(Error::Version { .. })), "{old:?}");
        }
    }
}
