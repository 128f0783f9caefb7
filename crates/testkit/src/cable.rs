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
}

async fn accept(listener: TcpListener, behind: u16, condition: Arc<watch::Sender<Condition>>) {
    // Dropped with this task, and then so are the connections.
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let condition = condition.subscribe();
        connections.spawn(async move {
            // Whoever leaves is no error here, nor is somebody who is away.
            let _ = carry(client, behind, condition).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn carry(
    client: TcpStream,
    behind: u16,
    mut condition: watch::Receiver<Condition>,
) -> io::Result<()> {
    if *condition.borrow() == Condition::Cut {
        return Ok(());
    }
    let server = TcpStream::connect(("127.0.0.1", behind)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let there = pump(from_client, to_server, condition.clone(), Way::There);
    let back = pump(from_server, to_client, condition.clone(), Way::Back);
    tokio::select! {
        ended = async { tokio::try_join!(there, back) } => ended.map(drop),
        _ = condition.wait_for(|condition| *condition == Condition::Cut) => Ok(()),
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut condition: watch::Receiver<Condition>,
    way: Way,
) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut bytes).await?;
        let slow = condition.wait_for(|condition| passes(*condition, way)).await;
        let slow = slow.map(|condition| *condition).unwrap_or(Condition::Cut);
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
        Condition::Good | Condition::Slow(_) | Condition::Cut => true,
        Condition::Deaf => way == Way::There,
        Condition::Dead => false,
    }
}
