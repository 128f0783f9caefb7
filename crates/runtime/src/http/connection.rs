//! The connection of a request: its peer address, deadline timer and received bytes.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::Request;

use super::REQUEST_DEADLINE;
use super::budget::Budget;
use super::deadline::DeadlineTimer;
use super::intake::Intake;

/// The address at the other end of a request's TCP connection: the client, or the last proxy before
/// this process. An extension of every request that reaches a router through a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// The connection that a request comes from.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) timer: DeadlineTimer,
    pub(super) intake: Arc<Intake>,
    peer: Option<Peer>,
}

impl Client {
    pub(super) fn new(intake: Arc<Intake>, peer: Option<SocketAddr>) -> Self {
        Self { timer: DeadlineTimer::new(REQUEST_DEADLINE), intake, peer: peer.map(Peer) }
    }

    /// Returns the client of a request that has no connection, with an unlimited byte budget.
    pub(super) fn unconnected(peer: Option<Peer>) -> Self {
        let intake = Arc::new(Intake::new(Budget::new(usize::MAX)));
        Self::new(intake, peer.map(|Peer(address)| address))
    }

    /// Returns the address of the other end of the connection.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        self.peer.map(|Peer(address)| address.ip())
    }

    /// Adds [`Peer`] to a request.
    pub(super) fn add_peer(&self, request: &mut Request) {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
    }
}
