//! A proxy in front of Redis that can stay silent or reply with errors.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::fake_redis::resp;

/// What happens to commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyMode {
    /// They are forwarded to Redis.
    Forward,
    /// They are read and get no reply; new connections are accepted.
    Silent,
    /// They get this error, such as `LOADING Redis is loading`.
    Reject(String),
}

/// A port that forwards to a Redis.
#[derive(Debug)]
pub struct RedisProxy {
    port: u16,
    state: Arc<State>,
    accepting: JoinSet<()>,
}

#[derive(Debug)]
struct State {
    target: u16,
    mode: Mutex<ProxyMode>,
    connections: AtomicU64,
    commands: AtomicU64,
}

impl RedisProxy {
    /// Starts a proxy to the Redis on this port.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start(target: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (connections, commands) = (AtomicU64::new(0), AtomicU64::new(0));
        let state = State { target, mode: Mutex::new(ProxyMode::Forward), connections, commands };
        let state = Arc::new(state);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, state.clone()));
        Ok(Self { port, state, accepting })
    }

    /// Returns the address for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sets what happens to commands from now on.
    pub fn set_mode(&self, mode: ProxyMode) {
        *self.state.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// Returns the number of connections so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Returns the number of commands so far.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.state.commands.load(Ordering::Relaxed)
    }

    /// Stops the proxy and closes every connection.
    pub async fn close(mut self) {
        self.accepting.shutdown().await;
    }
}

impl State {
    fn mode(&self) -> ProxyMode {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    // Dropped with this task, which closes the connections.
    let mut clients = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::Relaxed);
        let state = state.clone();
        clients.spawn(async move {
            // A client that disconnects is no error here, nor is an unreachable Redis.
            let _ = proxy_connection(client, &state).await;
        });
    }
}

async fn proxy_connection(client: TcpStream, state: &State) -> io::Result<()> {
    let redis = TcpStream::connect(("127.0.0.1", state.target)).await?;
    let (commands, to_client) = client.into_split();
    let (replies, requests) = redis.into_split();
    // Both write to the client, but never at the same time: an error follows only a command, and
    // tests change the mode while no command is in flight.
    let to_client = tokio::sync::Mutex::new(to_client);
    tokio::select! {
        ended = forward_commands(commands, requests, &to_client, state) => ended,
        ended = forward_replies(replies, &to_client) => ended,
    }
}

async fn forward_commands(
    commands: OwnedReadHalf,
    mut requests: OwnedWriteHalf,
    to_client: &tokio::sync::Mutex<OwnedWriteHalf>,
    state: &State,
) -> io::Result<()> {
    let mut commands = BufReader::new(commands);
    while let Some(command) = resp::read_frame(&mut commands).await? {
        state.commands.fetch_add(1, Ordering::Relaxed);
        match state.mode() {
            ProxyMode::Forward => requests.write_all(&command).await?,
            ProxyMode::Silent => {}
            ProxyMode::Reject(why) => {
                to_client.lock().await.write_all(format!("-{why}\r\n").as_bytes()).await?;
            }
        }
    }
    Ok(())
}

async fn forward_replies(
    mut replies: OwnedReadHalf,
    to_client: &tokio::sync::Mutex<OwnedWriteHalf>,
) -> io::Result<()> {
    let mut held = vec![0; 64 * 1024];
    loop {
        let read = replies.read(&mut held).await?;
        if read == 0 {
            return Ok(());
        }
        to_client.lock().await.write_all(&held[..read]).await?;
    }
}
