//! Finding a server and connecting to it.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, RedisError, Value, cmd};
use rslock::LockManager;
use tokio::time::Instant;

use super::access::RedisFiles;
use super::call_error::{CallError, ErrorClass, classify, describe, into_store_error};
use super::node::NodeConnection;
use super::sentinel::Sentinels;
use super::url::{Credentials, NodeAddr};
use crate::Error;

/// Where a server is found.
#[derive(Debug)]
pub(super) enum Endpoint {
    /// The master at this URL, as the Redis library reads it.
    Standalone { url: String, files: RedisFiles },
    /// The master that the sentinels report.
    Sentinel(Sentinels),
    /// A node of a cluster. It redirects calls for slots that it does not serve.
    ClusterNode { node: NodeAddr, credentials: Credentials },
}

impl Endpoint {
    /// Connects and checks that the server replies and accepts writes.
    pub(super) async fn connect(&self, deadline: Instant) -> Result<NodeConnection, CallError> {
        let client = match self {
            Self::Standalone { url, files } => files.client(url).await?,
            Self::Sentinel(sentinels) => {
                let node = sentinels.master(deadline).await?;
                sentinels.credentials().client(&node).await?
            }
            Self::ClusterNode { node, credentials } => credentials.client(node).await?,
        };
        self.handshake(client, !matches!(self, Self::ClusterNode { .. }), deadline).await
    }

    async fn handshake(
        &self,
        client: Client,
        must_be_master: bool,
        deadline: Instant,
    ) -> Result<NodeConnection, CallError> {
        let mut connection =
            connection(&client, deadline).await.map_err(|error| self.refused(&error))?;
        let pong: Result<Value, _> = cmd("PING").query_async(&mut connection).await;
        pong.map_err(|error| self.refused(&error))?;
        if must_be_master {
            self.check_role(&mut connection).await?;
        }
        let has_replied = AtomicBool::new(false);
        Ok(NodeConnection { connection, lock_manager: lock_manager(client), has_replied })
    }

    /// Rejects a replica, which would serve reads and refuse writes. A server that does not permit `ROLE`
    /// counts as a master.
    async fn check_role(&self, connection: &mut MultiplexedConnection) -> Result<(), CallError> {
        let role: Result<Value, RedisError> = cmd("ROLE").query_async(connection).await;
        match role {
            Ok(Value::Array(words))
                if words.first() == Some(&Value::BulkString(b"slave".into())) =>
            {
                Err(CallError::unavailable(self, "it is a replica"))
            }
            Err(error) if classify(&error) != ErrorClass::Reply => Err(self.refused(&error)),
            _ => Ok(()),
        }
    }

    /// Only an invalid URL is a configuration error. A retry can help after every other error, also after a
    /// refused certificate or password, because those may be corrected in their files or on the server.
    fn refused(&self, error: &RedisError) -> CallError {
        match into_store_error(error) {
            invalid @ Error::InvalidUrl(_) => CallError::Config(invalid),
            _ => CallError::unavailable(self, describe(error)),
        }
    }
}

/// Opens a connection without a response timeout, because every call has a deadline.
pub(super) async fn connection(
    client: &Client,
    deadline: Instant,
) -> Result<MultiplexedConnection, RedisError> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(Some(remaining));
    client.get_multiplexed_async_connection_with_config(&config).await
}

/// Creates one lock manager per connection, so that the lock is always on the server that has the lines.
pub(super) fn lock_manager(client: Client) -> LockManager {
    let mut manager = LockManager::from_clients(vec![client]);
    // One attempt: the scheduler decides whether to retry.
    manager.set_retry(1, Duration::from_millis(1));
    manager
}

/// Returns the part of a URL without credentials.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    rest.split(['/', '?']).next().unwrap_or_default()
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Standalone { url, .. } => f.write_str(host(url)),
            Self::Sentinel(sentinels) => sentinels.fmt(f),
            Self::ClusterNode { node, .. } => node.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_host_is_shown() {
        for url in ["redis://u:secret@a:1/2?protocol=resp3", "redis://:secret@a:1", "redis://a:1/0"]
        {
            let endpoint = Endpoint::Standalone { url: url.into(), files: RedisFiles::default() };
            assert_eq!(endpoint.to_string(), "a:1", "{url}");
        }
    }
}
