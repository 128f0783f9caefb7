//! TCP proxy that injects faults: delay, reset, or a connection that stays open and transfers
//! nothing.
//!
//! Unlike [`crate::RedisProxy`] it does not parse what it forwards. Bytes it holds back are not
//! lost: they arrive when the fault ends, as on a network that retransmits.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The fault of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkFault {
    /// Bytes are forwarded.
    None,
    /// Bytes are forwarded with this delay.
    Delay(Duration),
    /// Connections are closed, and so are new ones.
    Reset,
    /// Requests are forwarded, replies are held until the fault ends.
    HoldReplies,
    /// Everything is held until the fault ends; new connections are accepted.
    HoldAll,
    /// No fault until a request with these bytes; that one and all later requests are held.
    TrapRequest(&'static [u8]),
    /// Replies are forwarded, requests are held until the fault ends.
    HoldRequests,
}

/// A port that forwards to another one.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    fault: Arc<watch::Sender<LinkFault>>,
    _accepting: JoinSet<()>,
}

/// The direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Reply,
}

impl FaultProxy {
    /// Starts a proxy without a fault to this port of the loopback interface.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start(target: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let fault = Arc::new(watch::Sender::new(LinkFault::None));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, target, fault.clone()));
        Ok(Self { port, fault, _accepting: accepting })
    }

    /// Returns the port for clients.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets the fault from now on.
    pub fn set_fault(&self, fault: LinkFault) {
        self.fault.send_replace(fault);
    }

    /// Waits until a request matched [`LinkFault::TrapRequest`].
    pub async fn trapped(&self) {
        // The sender lives as long as this value, so waiting cannot fail.
        let _ = self.fault.subscribe().wait_for(|now| *now == LinkFault::HoldRequests).await;
    }
}

async fn accept(listener: TcpListener, target: u16, fault: Arc<watch::Sender<LinkFault>>) {
    // Dropped with this task, which closes the connections.
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let fault = fault.clone();
        connections.spawn(async move {
            // A client that disconnects is no error here, nor is an unreachable server.
            let _ = proxy_connection(client, target, &fault).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn proxy_connection(
    client: TcpStream,
    target: u16,
    fault: &watch::Sender<LinkFault>,
) -> io::Result<()> {
    let mut now = fault.subscribe();
    if *now.borrow() == LinkFault::Reset {
        return Ok(());
    }
    let server = TcpStream::connect(("127.0.0.1", target)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = forward(from_client, to_server, fault, Direction::Request);
    let replies = forward(from_server, to_client, fault, Direction::Reply);
    tokio::select! {
        ended = async { tokio::try_join!(requests, replies) } => ended.map(drop),
        _ = now.wait_for(|now| *now == LinkFault::Reset) => Ok(()),
    }
}

async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    fault: &watch::Sender<LinkFault>,
    direction: Direction,
) -> io::Result<()> {
    let (mut bytes, mut now) = (vec![0; 16 * 1024], fault.subscribe());
    loop {
        let read = from.read(&mut bytes).await?;
        if direction == Direction::Request {
            fault.send_if_modified(|now| matches_trap(now, &bytes[..read]));
        }
        let slow = now.wait_for(|now| passes(*now, direction)).await;
        let slow = slow.map(|now| *now).unwrap_or(LinkFault::Reset);
        if let LinkFault::Delay(by) = slow {
            tokio::time::sleep(by).await;
        }
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&bytes[..read]).await?;
    }
}

fn passes(fault: LinkFault, direction: Direction) -> bool {
    match fault {
        LinkFault::None | LinkFault::Delay(_) | LinkFault::Reset | LinkFault::TrapRequest(_) => {
            true
        }
        LinkFault::HoldReplies => direction == Direction::Request,
        LinkFault::HoldRequests => direction == Direction::Reply,
        LinkFault::HoldAll => false,
    }
}

/// Starts to hold requests if these bytes match the trap. Returns whether they do.
fn matches_trap(now: &mut LinkFault, bytes: &[u8]) -> bool {
    let LinkFault::TrapRequest(pattern) = *now else { return false };
    let is_match = bytes.windows(pattern.len().max(1)).any(|window| window == pattern);
    if is_match {
        *now = LinkFault::HoldRequests;
    }
    is_match
}
