//! A client of one stream. Minimal parsing, because 10,000 clients share two cores with the pod.

use std::time::Instant;

use anyhow::ensure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;

/// The status lines of a WebSocket upgrade and of an event stream.
const ACCEPTED: [&[u8]; 2] = [b"HTTP/1.1 101", b"HTTP/1.1 200"];
/// Both transports carry the ticket as the same JSON, with the token before the status.
const WAITING: &[u8] = br#""status":"WAITING""#;
const ENTERABLE: &[u8] = br#""status":"ENTERABLE""#;
/// No message is longer, headers included.
const BUFFER_SIZE: usize = 2048;

#[derive(Debug, Clone, Copy)]
pub(super) enum Transport {
    Sse,
    WebSocket,
}

/// What one client received, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observation {
    pub(super) client: usize,
    pub(super) event: StreamEvent,
    pub(super) at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEvent {
    /// The first message: the ticket waits.
    Waiting,
    /// The ticket was admitted.
    Enterable,
    /// `ENTERABLE` for a ticket of another client: an error of the pod.
    OtherTicket,
    /// The pod closed the connection.
    Closed,
}

struct StreamClient {
    client: usize,
    /// The text before the status in messages about the client's own ticket.
    token_field: Vec<u8>,
    /// Received bytes that may be the beginning of a message.
    buffer: Vec<u8>,
    is_waiting: bool,
    observations: UnboundedSender<Observation>,
}

impl Transport {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sse => "SSE stream",
            Self::WebSocket => "WebSocket",
        }
    }

    fn request(self, path: &str) -> String {
        match self {
            Self::Sse => format!("GET {path}/events HTTP/1.1\r\nhost: bench\r\n\r\n"),
            Self::WebSocket => format!(
                "GET {path}/ws HTTP/1.1\r\nhost: bench\r\nconnection: upgrade\r\n\
                 upgrade: websocket\r\nsec-websocket-version: 13\r\n\
                 sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
            ),
        }
    }

    /// Opens a stream and reads it until `tasks` is dropped.
    pub(super) async fn open(
        self,
        server: &str,
        (client, path): (usize, &str),
        tasks: &mut JoinSet<anyhow::Result<()>>,
        observations: &UnboundedSender<Observation>,
    ) -> anyhow::Result<()> {
        let mut stream = TcpStream::connect(server).await?;
        stream.write_all(self.request(path).as_bytes()).await?;
        let token = path.rsplit('/').next().unwrap_or_default();
        tasks.spawn(StreamClient::new(client, token, observations.clone()).read(stream));
        Ok(())
    }
}

impl StreamClient {
    fn new(client: usize, token: &str, observations: UnboundedSender<Observation>) -> Self {
        let token_field = format!(r#""token":"{token}","#).into_bytes();
        let buffer = Vec::with_capacity(BUFFER_SIZE);
        Self { client, token_field, buffer, is_waiting: false, observations }
    }

    async fn read(mut self, mut stream: TcpStream) -> anyhow::Result<()> {
        while stream.read_buf(&mut self.buffer).await.unwrap_or(0) > 0 {
            self.parse()?;
        }
        self.observe(StreamEvent::Closed);
        Ok(())
    }

    /// Consumes all complete messages and keeps what may be the beginning of the next.
    fn parse(&mut self) -> anyhow::Result<()> {
        if !self.is_waiting {
            let status = &self.buffer[..self.buffer.len().min(ACCEPTED[0].len())];
            let text = String::from_utf8_lossy(&self.buffer);
            ensure!(ACCEPTED.iter().any(|line| line.starts_with(status)), "refused: {text}");
            if find(&self.buffer, WAITING).is_some() {
                self.is_waiting = true;
                self.observe(StreamEvent::Waiting);
            }
        }
        while let Some(at) = find(&self.buffer, ENTERABLE) {
            let is_own = self.buffer[..at].ends_with(&self.token_field);
            self.observe(if is_own { StreamEvent::Enterable } else { StreamEvent::OtherTicket });
            self.buffer.drain(..at + ENTERABLE.len());
        }
        if self.is_waiting {
            let keep = (self.token_field.len() + ENTERABLE.len()).min(self.buffer.len());
            self.buffer.drain(..self.buffer.len() - keep);
        }
        Ok(())
    }

    fn observe(&self, event: StreamEvent) {
        // The receiver is dropped at the end of the scenario.
        let _ =
            self.observations.send(Observation { client: self.client, event, at: Instant::now() });
    }
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn enterable_counts_once_in_chunks_of_any_size_and_only_for_the_own_ticket() {
        let all = concat!(
            "HTTP/1.1 200 OK\r\n\r\n",
            r#"{"token":"kim-1","status":"WAITING"}"#,
            r#"{"token":"kim-1","status":"ENTERABLE","pass":"x"}"#,
            r#"{"token":"lee-2","status":"ENTERABLE"}"#,
        );
        for size in [1, 7, 40, 1000] {
            let (sender, mut receiver) = unbounded_channel();
            let mut client = StreamClient::new(0, "kim-1", sender);
            for chunk in all.as_bytes().chunks(size) {
                client.buffer.extend(chunk);
                client.parse().unwrap();
            }
            let events: Vec<_> =
                std::iter::from_fn(|| receiver.try_recv().ok()?.event.into()).collect();
            let expected = [StreamEvent::Waiting, StreamEvent::Enterable, StreamEvent::OtherTicket];
            assert_eq!(events, expected, "chunks of {size} bytes");
        }
    }
}
