//! Somebody between a client and a Redis, who can be silent or say no.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::fake_redis::resp;

/// What happens to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mood {
    /// It reaches Redis.
    Through,
    /// It is taken and never answered, and so are new connections.
    Silent,
    /// It is answered with this error, such as `LOADING Redis is loading`.
    Refusing(String),
}

/// A port through which a Redis is reached, or not.
#[derive(Debug)]
pub struct RedisProxy {
    port: u16,
    state: Arc<State>,
    accepting: JoinSet<()>,
}

#[derive(Debug)]
struct State {
    behind: u16,
    mood: Mutex<Mood>,
    connections: AtomicU64,
    commands: AtomicU64,
}

impl RedisProxy {
    /// A way to the Redis on this port.
    ///
    /// # Errors
    /// If there is no port to listen on.
    pub async fn start(behind: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (connections, commands) = (AtomicU64::new(0), AtomicU64::new(0));
        let state = State { behind, mood: Mutex::new(Mood::Through), connections, commands };
        let state = Arc::new(state);
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, state.clone()));
        Ok(Self { port, state, accepting })
    }

    /// The address for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// What happens to commands from now on.
    pub fn set_mood(&self, mood: Mood) {
        *self.state.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }

    /// How many connections were made so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// How many commands came so far.
    #[must_use]
    pub fn commands(&self) -> u64 {
        self.state.commands.load(Ordering::Relaxed)
    }

    /// Ends the proxy and every connection through it.
    pub async fn close(mut self) {
        self.accepting.shutdown().await;
    }
}

impl State {
    fn mood(&self) -> Mood {
        self.mood.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    // Dropped with this task, and then so are the connections.
    let mut clients = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::Relaxed);
        let state = state.clone();
        clients.spawn(async move {
            // A client that leaves is no error here, nor is a Redis that is away.
            let _ = stand_between(client, &state).await;
        });
    }
}

async fn stand_between(client: TcpStream, state: &State) -> io::Result<()> {
    let redis = TcpStream::connect(("127.0.0.1", state.behind)).await?;
    let (commands, answers) = client.into_split();
    let (replies, requests) = redis.into_split();
    // Both write to the client, but never in one moment: a refusal follows only on a command, and
    // a test changes the mood while nothing is under way.
    let answers = tokio::sync::Mutex::new(answers);
    tokio::select! {
        ended = hand_on(commands, requests, &answers, state) => ended,
        ended = hand_back(replies, &answers) => ended,
    }
}

async fn hand_on(
    commands: OwnedReadHalf,
    mut requests: OwnedWriteHalf,
    answers: &tokio::sync::Mutex<OwnedWriteHalf>,
    state: &State,
) -> io::Result<()> {
    let mut commands = BufReader::new(commands);
    while let Some(command) = resp::read_frame(&mut commands).await? {
        state.commands.fetch_add(1, Ordering::Relaxed);
        match state.mood() {
            Mood::Through => requests.write_all(&command).await?,
            Mood::Silent => {}
            Mood::Refusing(why) => {
                answers.lock().await.write_all(format!("-{why}\r\n").as_bytes()).await?;
            }
        }
    }
    Ok(())
}

async fn hand_back(
    mut replies: OwnedReadHalf,
    answers: &tokio::sync::Mutex<OwnedWriteHalf>,
) -> io::Result<()> {
    let mut held = vec![0; 64 * 1024];
    loop {
        let read = replies.read(&mut held).await?;
        if read == 0 {
            return Ok(());
        }
        answers.lock().await.write_all(&held[..read]).await?;
    }
}
