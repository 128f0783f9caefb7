//! The Redis client: one server, the sentinels' master, or the nodes of a cluster.
//!
//! Every command and script passes through this module with one deadline, which includes
//! connecting, redirections, and sending a script again that the server does not have. A call that
//! Redis may have executed is never repeated.
//!
//! | file | contents |
//! |---|---|
//! | `client/url.rs`, `access.rs` | store URLs, and the files with certificates and password |
//! | `client/endpoint.rs`, `sentinel.rs`, `cluster.rs`, `slots.rs` | where servers are found |
//! | `client/node.rs`, `circuit_breaker.rs`, `backoff.rs` | one server: calls, rejections, probes |
//! | `client/call_error.rs` | the meaning of errors |
//! | `client/server_check.rs` | the requirements for a server |

pub(crate) mod access;
pub(crate) mod backoff;
pub(super) mod call_error;
mod circuit_breaker;
mod cluster;
mod endpoint;
mod node;
mod sentinel;
mod server_check;
mod slots;
mod url;

use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, FromRedisValue, Value, cmd, from_redis_value};
use futures_util::future::try_join_all;
use rslock::LockManager;
use tokio::time::Instant;

use self::call_error::CallError;
use self::cluster::Cluster;
use self::endpoint::Endpoint;
use self::node::{CallMode, NodeConnection, RedisNode};
use self::sentinel::Sentinels;
use self::slots::slot_of;
pub(super) use self::url::RedisUrl;
use super::keys;
use super::scripts::{ScriptInvocation, scripts};
use crate::Result;

/// Timeout of one call: 700 ms, because a request must fail within 1 s.
const CALL_TIMEOUT: Duration = Duration::from_millis(700);

/// Timeout of opening: 5 s. No request waits for it.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// The connection to Redis.
#[derive(Debug)]
pub(super) enum RedisClient {
    Single(Arc<RedisNode>),
    Cluster(Box<Cluster>),
}

impl RedisClient {
    pub(super) fn new(url: RedisUrl) -> Self {
        let single = |endpoint| Self::Single(Arc::new(RedisNode::new(endpoint)));
        match url {
            RedisUrl::Standalone { url, files } => single(Endpoint::Standalone { url, files }),
            RedisUrl::Sentinel { sentinels, service, credentials } => {
                single(Endpoint::Sentinel(Sentinels::new(sentinels, service, credentials)))
            }
            RedisUrl::Cluster { seeds, credentials } => {
                Self::Cluster(Box::new(Cluster::new(seeds, credentials)))
            }
        }
    }

    /// Connects to every server, checks its version and eviction policy, and loads the scripts.
    pub(super) async fn open(&self, allow_eviction: bool) -> Result<()> {
        let deadline = Instant::now() + OPEN_TIMEOUT;
        let nodes = self.nodes(deadline).await?;
        let opened = nodes.iter().map(|node| async move {
            let info = info_of(node, "server", deadline).await?;
            server_check::check_version(&info, matches!(self, Self::Cluster(_)))?;
            if !allow_eviction {
                server_check::check_eviction(&info_of(node, "memory", deadline).await?)?;
            }
            let loads: Vec<Cmd> = scripts().all().map(|script| script.load()).collect();
            let loads = loads.iter().map(|load| node.call(load, CallMode::Normal, deadline));
            try_join_all(loads).await?;
            Ok(())
        });
        try_join_all(opened).await.map(drop)
    }

    /// Returns a section of `INFO` from every server.
    pub(super) async fn node_info(&self, section: &str) -> Result<Vec<String>> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        let nodes = self.nodes(deadline).await?;
        try_join_all(nodes.iter().map(|node| info_of(node, section, deadline))).await
    }

    async fn nodes(&self, deadline: Instant) -> Result<Vec<Arc<RedisNode>>> {
        Ok(match self {
            Self::Single(node) => vec![node.clone()],
            Self::Cluster(cluster) => cluster.masters(deadline).await?,
        })
    }

    /// Runs a script; a server that does not have it receives its text.
    pub(super) async fn run<T: FromRedisValue>(&self, script: ScriptInvocation<'_>) -> Result<T> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        let key = script.first_key().unwrap_or_default();
        let reply = match self.send(&script.evalsha(), key, deadline).await {
            Err(error) if call_error::is_unknown_script(&error) => {
                self.send(&script.eval(), key, deadline).await
            }
            reply => reply,
        };
        decode(reply?)
    }

    /// Sends a command whose first argument is its key.
    pub(super) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        let key = match command.args_iter().nth(1) {
            Some(::redis::Arg::Simple(key)) => key,
            _ => &[],
        };
        decode(self.send(command, key, Instant::now() + CALL_TIMEOUT).await?)
    }

    /// Sends a command without a key to the server that has the lease.
    pub(super) async fn lease_command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        decode(self.send(command, keys::lease().as_bytes(), deadline).await?)
    }

    async fn send(&self, command: &Cmd, key: &[u8], deadline: Instant) -> Reply {
        match self {
            Self::Single(node) => node.call(command, CallMode::Normal, deadline).await,
            Self::Cluster(cluster) => cluster.call(command, slot_of(key), deadline).await,
        }
    }

    /// Returns the lock manager of the server that has the lease, or `None` if it is unavailable.
    pub(super) async fn lock_manager(&self) -> Option<LockManager> {
        let (_, connection) = self.lease_node().await.ok()?;
        Some(connection.lock_manager.clone())
    }

    /// Discards the connection of the lock manager, because a lock call on it got no reply.
    pub(super) async fn discard_lock_connection(&self) {
        if let Ok((node, connection)) = self.lease_node().await {
            node.discard(&connection);
        }
    }

    async fn lease_node(
        &self,
    ) -> std::result::Result<(Arc<RedisNode>, Arc<NodeConnection>), CallError> {
        let deadline = Instant::now() + CALL_TIMEOUT;
        let node = match self {
            Self::Single(node) => node.clone(),
            Self::Cluster(cluster) => {
                cluster.node_of(slot_of(keys::lease().as_bytes()), deadline).await?
            }
        };
        let connection = node.connect(deadline).await?;
        Ok((node, connection))
    }
}

type Reply = std::result::Result<Value, CallError>;

async fn info_of(node: &RedisNode, section: &str, deadline: Instant) -> Result<String> {
    let mut info = cmd("INFO");
    decode(node.call(info.arg(section), CallMode::Normal, deadline).await?)
}

fn decode<T: FromRedisValue>(value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| crate::Error::corrupt(error.to_string()))
}
