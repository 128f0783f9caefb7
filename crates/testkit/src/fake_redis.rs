//! A server that answers like a Redis of some version.

pub(crate) mod resp;

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Replies to the commands with which a client connects and reads the version, and with `+OK` to
/// all others. Dropping it closes the port and all connections.
#[derive(Debug)]
pub struct FakeRedis {
    port: u16,
    _accepting: JoinSet<()>,
}

impl FakeRedis {
    /// Starts a server that reports this version, such as `5.0.14`.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start(version: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, version.into()));
        Ok(Self { port, _accepting: accepting })
    }

    /// Returns the address for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the port on the loopback interface.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

async fn accept(listener: TcpListener, version: Arc<str>) {
    // Dropped with this task, which closes the connections.
    let mut clients = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let version = Arc::clone(&version);
        clients.spawn(async move {
            // A client that disconnects is no error here.
            let _ = serve_client(stream, &version).await;
        });
    }
}

async fn serve_client(stream: TcpStream, version: &str) -> io::Result<()> {
    let mut stream = BufStream::new(stream);
    while let Some(command) = resp::read_command(&mut stream).await? {
        let reply = reply(&command, version);
        stream.write_all(reply.as_bytes()).await?;
        stream.flush().await?;
    }
    Ok(())
}

fn reply(command: &[String], version: &str) -> String {
    let name = command.first().map(|name| name.to_ascii_uppercase());
    match name.as_deref() {
        Some("PING") => "+PONG\r\n".into(),
        Some("INFO") => resp::bulk(&format!("# Server\r\nredis_version:{version}\r\n")),
        Some("HELLO") => {
            format!("%3\r\n+server\r\n+redis\r\n+version\r\n+{version}\r\n+proto\r\n:3\r\n")
        }
        _ => "+OK\r\n".into(),
    }
}
