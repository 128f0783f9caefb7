//! One server. Only this module sends commands to Redis.
//!
//! Every call has a deadline, and its result updates the state of the server. The next call replaces a
//! broken connection. The first replacement does not open the circuit breaker, so that a broken connection
//! fails only the calls that used it. If the new connection gives no reply either, cannot be opened, or the
//! server reports that it cannot serve, the breaker opens and calls fail immediately until a probe succeeds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use ::redis::aio::{ConnectionLike, MultiplexedConnection};
use ::redis::{Cmd, RedisError, RedisResult, Value};
use rslock::LockManager;
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use super::call_error::{CallError, ErrorClass, classify, describe};
use super::circuit_breaker::{CircuitBreaker, Permit};
use super::endpoint::Endpoint;

/// A server, connected or not.
#[derive(Debug)]
pub(in crate::redis) struct RedisNode {
    endpoint: Endpoint,
    breaker: CircuitBreaker,
    current: RwLock<Option<Arc<NodeConnection>>>,
    /// Held while one call connects, so that other calls wait for that connection.
    connecting: tokio::sync::Mutex<()>,
    /// When a forbidden command was logged last.
    forbidden_logged_at: Mutex<Option<Instant>>,
}

/// Interval of log lines about commands that the ACL forbids: 60 s, because every call may be refused.
const FORBIDDEN_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// A connection to one server.
pub(in crate::redis) struct NodeConnection {
    pub(super) connection: MultiplexedConnection,
    /// The lock of the lease, on the same server.
    pub(super) lock_manager: LockManager,
    /// Whether a call on this connection got a reply.
    pub(super) has_replied: AtomicBool,
}

/// How a command is sent. `ASKING` comes before a command for a slot that is in migration to the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::redis) enum CallMode {
    Normal,
    Asking,
}

impl RedisNode {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        let (breaker, current) = (CircuitBreaker::default(), RwLock::default());
        let connecting = tokio::sync::Mutex::default();
        Self { endpoint, breaker, current, connecting, forbidden_logged_at: Mutex::default() }
    }

    /// Returns whether calls are rejected because the server did not reply.
    pub(super) fn is_unavailable(&self) -> bool {
        self.breaker.is_open()
    }

    /// Sends a command, unless the circuit breaker is open.
    pub(super) async fn call(
        &self,
        command: &Cmd,
        mode: CallMode,
        deadline: Instant,
    ) -> Result<Value, CallError> {
        let Some(permit) = self.breaker.acquire(deadline).await else {
            return Err(CallError::unavailable(self, "it did not reply lately"));
        };
        let connection = match self.connection(deadline).await {
            Ok(connection) => connection,
            Err(error) => return Err(self.failed(permit, error)),
        };
        let sent = send(connection.connection.clone(), command, mode);
        let error = match timeout_at(deadline, sent).await {
            Ok(Ok(value)) => {
                self.succeeded(permit, &connection);
                return Ok(value);
            }
            Ok(Err(error)) => error,
            Err(_) => return Err(self.connection_lost(permit, &connection, "no reply in time")),
        };
        match classify(&error) {
            ErrorClass::Reply => {
                self.succeeded(permit, &connection);
                Err(CallError::Reply(error))
            }
            ErrorClass::TemporarilyRefused => {
                self.succeeded(permit, &connection);
                Err(CallError::unavailable(self, error))
            }
            // The breaker stays closed, because the ACL may permit all other commands.
            ErrorClass::Forbidden => {
                self.succeeded(permit, &connection);
                self.log_forbidden(&error);
                Err(CallError::unavailable(self, describe(&error)))
            }
            ErrorClass::NodeUnavailable => {
                self.discard(&connection);
                Err(self.failed(permit, CallError::unavailable(self, describe(&error))))
            }
            ErrorClass::ConnectionLost => {
                Err(self.connection_lost(permit, &connection, describe(&error)))
            }
        }
    }

    /// Sends a command that a server can answer even if it cannot serve. The result does not change the
    /// circuit breaker.
    pub(super) async fn call_unguarded(
        &self,
        command: &Cmd,
        deadline: Instant,
    ) -> Result<Value, CallError> {
        let connection = self.connect(deadline).await?;
        match timeout_at(deadline, send(connection.connection.clone(), command, CallMode::Normal))
            .await
        {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) if classify(&error) == ErrorClass::Reply => Err(CallError::Reply(error)),
            Ok(Err(error)) => {
                self.discard(&connection);
                Err(CallError::unavailable(self, error))
            }
            Err(_) => {
                self.discard(&connection);
                Err(CallError::unavailable(self, "no reply in time"))
            }
        }
    }

    /// Returns the connection; opens one if there is none and the circuit breaker permits it.
    pub(super) async fn connect(
        &self,
        deadline: Instant,
    ) -> Result<Arc<NodeConnection>, CallError> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let Some(permit) = self.breaker.acquire(deadline).await else {
            return Err(CallError::unavailable(self, "it did not reply lately"));
        };
        // A server that accepts connections may still not serve, so an open breaker stays open.
        self.connection(deadline).await.map_err(|error| self.failed(permit, error))
    }

    /// Discards a connection; the next call opens another one.
    pub(super) fn discard(&self, connection: &Arc<NodeConnection>) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            *current = None;
        }
    }

    fn current(&self) -> Option<Arc<NodeConnection>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn connection(&self, deadline: Instant) -> Result<Arc<NodeConnection>, CallError> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let Ok(_connecting) = timeout_at(deadline, self.connecting.lock()).await else {
            return Err(CallError::unavailable(self, "no connection in time"));
        };
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let opened = timeout_at(deadline, self.endpoint.connect(deadline)).await;
        let connection =
            opened.map_err(|_| CallError::unavailable(self, "no connection in time"))??;
        let connection = Arc::new(connection);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(connection.clone());
        Ok(connection)
    }

    fn succeeded(&self, permit: Permit<'_>, connection: &NodeConnection) {
        if !connection.has_replied.load(Ordering::Relaxed) {
            connection.has_replied.store(true, Ordering::Relaxed);
        }
        if permit.succeed() {
            info!(redis.server = %self, "redis node recovered");
        }
    }

    fn connection_lost(
        &self,
        permit: Permit<'_>,
        connection: &Arc<NodeConnection>,
        reason: impl std::fmt::Display,
    ) -> CallError {
        self.discard(connection);
        let error = CallError::unavailable(self, reason);
        if connection.has_replied.load(Ordering::Relaxed) {
            error
        } else {
            self.failed(permit, error)
        }
    }

    fn log_forbidden(&self, error: &RedisError) {
        let (now, logged_at) = (Instant::now(), &self.forbidden_logged_at);
        let mut logged_at = logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_none_or(|at| now >= at + FORBIDDEN_LOG_INTERVAL) {
            *logged_at = Some(now);
            warn!(redis.server = %self, error = describe(error), "redis call forbidden");
        }
    }

    fn failed(&self, permit: Permit<'_>, error: CallError) -> CallError {
        if permit.fail() {
            warn!(redis.server = %self, %error, "redis node unavailable");
        }
        error
    }
}

impl std::fmt::Display for RedisNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.endpoint.fmt(f)
    }
}

impl std::fmt::Debug for NodeConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeConnection")
            .field("has_replied", &self.has_replied)
            .finish_non_exhaustive()
    }
}

async fn send(
    mut connection: MultiplexedConnection,
    command: &Cmd,
    mode: CallMode,
) -> RedisResult<Value> {
    if mode == CallMode::Normal {
        return connection.req_packed_command(command).await?.extract_error();
    }
    let mut asking = ::redis::pipe();
    asking.cmd("ASKING").add_command(command.clone());
    let mut replies = connection.req_packed_commands(&asking, 0, 2).await?;
    replies.pop().unwrap_or(Value::Nil).extract_error()
}
