//! A cable between two programs, which can be slow, cut, or dead while it looks alive.
//!
//! Unlike [`crate::RedisProxy`] it knows nothing of what it carries. What it holds back is not lost:
//! it arrives when the cable is good again, as it does on a network that repeats packets.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What happens to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// They arrive.
    Good,
    /// They arrive so much later.
    Slow(Duration),
    /// Connections end at once, and so do new ones.
    Cut,
    /// Requests arrive, answers do not until the cable is good.
    Deaf,
    /// Nothing arrives until the cable is good, and new connections look alive.
    Dead,
    /// Good until a request with these bytes comes by; from that one on it is mute.
    Snare(&'static [u8]),
    /// Answers arrive, requests do not until the cable is good.
    Mute,
}

/// A port through which another one is reached, or not.
#[derive(Debug)]
pub struct Cable {
    port: u16,
    condition: Arc<watch::Sender<Condition>>,
    _accepting: JoinSet<()>,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

impl Cable {
    /// A good cable to this port of the loopback interface.
    ///
    /// # Errors
    /// If there is no port to listen on.
    pub async fn to(behind: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let condition = Arc::new(watch::Sender::new(Condition::Good));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, behind, condition.clone()));
        Ok(Self { port, condition, _accepting: accepting })
    }

    /// The port for clients.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What happens from now on.
    pub fn set(&self, condition: Condition) {
        self.condition.send_replace(condition);
    }

    /// Waits until a request was caught in the snare.
    pub async fn caught(&self) {
        // The sender is ours, so that there is always an answer.
        let _ = self.condition.subscribe().wait_for(|now| *now == Condition::Mute).await;
    }
}

async fn accept(listener: TcpListener, behind: u16, condition: Arc<watch::Sender<Condition>>) {
    // Dropped with this task, and then so are the connections.
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let condition = condition.clone();
        connections.spawn(async move {
            // Whoever leaves is no error here, nor is somebody who is away.
            let _ = carry(client, behind, &condition).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn carry(
    client: TcpStream,
    behind: u16,
    condition: &watch::Sender<Condition>,
) -> io::Result<()> {
    let mut now = condition.subscribe();
    if *now.borrow() == Condition::Cut {
        return Ok(());
    }
    let server = TcpStream::connect(("127.0.0.1", behind)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let there = pump(from_client, to_server, condition, Way::There);
    let back = pump(from_server, to_client, condition, Way::Back);
    tokio::select! {
        ended = async { tokio::try_join!(there, back) } => ended.map(drop),
        _ = now.wait_for(|now| *now == Condition::Cut) => Ok(()),
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    condition: &watch::Sender<Condition>,
    way: Way,
) -> io::Result<()> {
    let (mut bytes, mut now) = (vec![0; 16 * 1024], condition.subscribe());
    loop {
        let read = from.read(&mut bytes).await?;
        if way == Way::There {
            condition.send_if_modified(|now| springs(now, &bytes[..read]));
        }
        let slow = now.wait_for(|now| passes(*now, way)).await;
        let slow = slow.map(|now| *now).unwrap_or(Condition::Cut);
        if let Condition::Slow(by) = slow {
            tokio::time::sleep(by).await;
        }
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&bytes[..read]).await?;
    }
}

fn passes(condition: Condition, way: Way) -> bool {
    match condition {
        Condition::Good | Condition::Slow(_) | Condition::Cut | Condition::Snare(_) => true,
        Condition::Deaf => way == Way::There,
        Condition::Mute => way == Way::Back,
        Condition::Dead => false,
    }
}

/// Whether the snare closes over these bytes.
fn springs(now: &mut Condition, bytes: &[u8]) -> bool {
    let Condition::Snare(bait) = *now else { return false };
    let caught = bytes.windows(bait.len().max(1)).any(|window| window == bait);
    if caught {
        *now = Condition::Mute;
    }
    caught
}
