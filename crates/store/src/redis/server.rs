//! One server: the only place from which anything is sent to Redis.
//!
//! A call has a deadline, and what it learns about the server is remembered. A connection on which
//! nothing can be heard any more is replaced by the next call. One replacement is free, so that a
//! connection that merely broke costs nobody but those who were using it; if nothing is heard on
//! the new one either, or it cannot be made, or the server itself says that it cannot serve, the
//! circuit opens and calls fail at once until a try succeeds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use ::redis::aio::{ConnectionLike, MultiplexedConnection};
use ::redis::{Cmd, RedisResult, Value};
use rslock::LockManager;
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use super::circuit::{Circuit, Pass};
use super::connect::Whereabouts;
use super::failure::{Failure, Verdict, verdict};

/// A server, whether or not it is there.
#[derive(Debug)]
pub(super) struct Server {
    whereabouts: Whereabouts,
    circuit: Circuit,
    current: RwLock<Option<Arc<Contact>>>,
    /// Held by whoever connects, so that the others wait for that connection.
    connecting: tokio::sync::Mutex<()>,
}

/// A connection and what goes with it.
pub(super) struct Contact {
    pub(super) connection: MultiplexedConnection,
    /// The lock behind the lease, on the same server.
    pub(super) locks: LockManager,
    /// Whether a call was answered on it.
    pub(super) proven: AtomicBool,
}

/// Sent before a command to a node that is about to get its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Plain,
    Asking,
}

impl Server {
    pub(super) fn new(whereabouts: Whereabouts) -> Self {
        let (circuit, current) = (Circuit::default(), RwLock::default());
        Self { whereabouts, circuit, current, connecting: tokio::sync::Mutex::default() }
    }

    /// Whether calls are being refused because the server did not answer.
    pub(super) fn is_away(&self) -> bool {
        self.circuit.is_open()
    }

    /// Asks the server, unless it is known not to answer.
    pub(super) async fn call(
        &self,
        command: &Cmd,
        manner: Manner,
        deadline: Instant,
    ) -> Result<Value, Failure> {
        let Some(pass) = self.circuit.pass(deadline).await else {
            return Err(Failure::away(self, "it did not answer lately"));
        };
        let contact = match self.contact(deadline).await {
            Ok(contact) => contact,
            Err(failure) => return Err(self.failed(pass, failure)),
        };
        let sent = send(contact.connection.clone(), command, manner);
        let error = match timeout_at(deadline, sent).await {
            Ok(Ok(value)) => {
                self.answered(pass, &contact);
                return Ok(value);
            }
            Ok(Err(error)) => error,
            Err(_) => return Err(self.lost(pass, &contact, "no answer in time")),
        };
        match verdict(&error) {
            Verdict::Answered => {
                self.answered(pass, &contact);
                Err(Failure::Answered(error))
            }
            Verdict::NotNow => {
                self.answered(pass, &contact);
                Err(Failure::away(self, error))
            }
            Verdict::Refuses => {
                self.retire(&contact);
                Err(self.failed(pass, Failure::away(self, error)))
            }
            Verdict::Lost => Err(self.lost(pass, &contact, error)),
        }
    }

    /// Asks on the side, for what can be told by a server that cannot serve. The answer says
    /// nothing about the circuit.
    pub(super) async fn ask(&self, command: &Cmd, deadline: Instant) -> Result<Value, Failure> {
        let contact = self.reached(deadline).await?;
        match timeout_at(deadline, send(contact.connection.clone(), command, Manner::Plain)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) if verdict(&error) == Verdict::Answered => Err(Failure::Answered(error)),
            Ok(Err(error)) => {
                self.retire(&contact);
                Err(Failure::away(self, error))
            }
            Err(_) => {
                self.retire(&contact);
                Err(Failure::away(self, "no answer in time"))
            }
        }
    }

    /// A connection, made if it is missing and somebody may try.
    pub(super) async fn reached(&self, deadline: Instant) -> Result<Arc<Contact>, Failure> {
        if let Some(contact) = self.current() {
            return Ok(contact);
        }
        let Some(pass) = self.circuit.pass(deadline).await else {
            return Err(Failure::away(self, "it did not answer lately"));
        };
        // Being reached does not mean to serve, so an open circuit stays open.
        self.contact(deadline).await.map_err(|failure| self.failed(pass, failure))
    }

    /// Gives up a connection; the next call makes another one.
    pub(super) fn retire(&self, contact: &Arc<Contact>) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, contact)) {
            *current = None;
        }
    }

    fn current(&self) -> Option<Arc<Contact>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn contact(&self, deadline: Instant) -> Result<Arc<Contact>, Failure> {
        if let Some(contact) = self.current() {
            return Ok(contact);
        }
        let Ok(_connecting) = timeout_at(deadline, self.connecting.lock()).await else {
            return Err(Failure::away(self, "no connection in time"));
        };
        if let Some(contact) = self.current() {
            return Ok(contact);
        }
        let made = timeout_at(deadline, self.whereabouts.connect(deadline)).await;
        let contact = made.map_err(|_| Failure::away(self, "no connection in time"))??;
        let contact = Arc::new(contact);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Some(contact.clone());
        Ok(contact)
    }

    fn answered(&self, pass: Pass<'_>, contact: &Contact) {
        if !contact.proven.load(Ordering::Relaxed) {
            contact.proven.store(true, Ordering::Relaxed);
        }
        if pass.answered() {
            info!(redis.server = %self, "redis answers again");
        }
    }

    fn lost(&self, pass: Pass<'_>, contact: &Arc<Contact>, why: impl std::fmt::Display) -> Failure {
        self.retire(contact);
        let failure = Failure::away(self, why);
        if contact.proven.load(Ordering::Relaxed) { failure } else { self.failed(pass, failure) }
    }

    fn failed(&self, pass: Pass<'_>, failure: Failure) -> Failure {
        if pass.failed() {
            warn!(redis.server = %self, why = %failure, "redis does not answer");
        }
        failure
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.whereabouts.fmt(f)
    }
}

impl std::fmt::Debug for Contact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contact").field("proven", &self.proven).finish_non_exhaustive()
    }
}

async fn send(
    mut connection: MultiplexedConnection,
    command: &Cmd,
    manner: Manner,
) -> RedisResult<Value> {
    if manner == Manner::Plain {
        return connection.req_packed_command(command).await?.extract_error();
    }
    let mut asking = ::redis::pipe();
    asking.cmd("ASKING").add_command(command.clone());
    let mut answers = connection.req_packed_commands(&asking, 0, 2).await?;
    answers.pop().unwrap_or(Value::Nil).extract_error()
}
