use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::Request;

use super::REQUEST_DEADLINE;
use super::alarm::Alarm;
use super::budget::Budget;
use super::intake::Intake;

/// The address at the other end of a request's TCP connection: the client, or the last proxy before
/// this process. An extension of every request that reaches a router through a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// What the guard knows about the connection a request comes from.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) alarm: Alarm,
    pub(super) intake: Arc<Intake>,
    peer: Option<Peer>,
}

impl Client {
    pub(super) fn new(intake: Arc<Intake>, peer: Option<SocketAddr>) -> Self {
        Self { alarm: Alarm::new(REQUEST_DEADLINE), intake, peer: peer.map(Peer) }
    }

    /// The client of a request that came without a connection.
    pub(super) fn unconnected() -> Self {
        Self::new(Arc::new(Intake::new(Budget::new(usize::MAX))), None)
    }

    /// Adds [`Peer`] to a request.
    pub(super) fn introduce(&self, request: &mut Request) {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
    }
}
