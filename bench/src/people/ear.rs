//! Somebody who listens to their ticket. Lean: ten thousand of them share two cores with the pod.

use std::time::Instant;

use anyhow::ensure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;

/// Answers to a socket's upgrade and to a stream's request.
const TAKEN: [&[u8]; 2] = [b"HTTP/1.1 101", b"HTTP/1.1 200"];
/// Both channels carry the ticket as the same JSON, with the token before the status.
const WAITING: &[u8] = br#""status":"WAITING""#;
const ENTERABLE: &[u8] = br#""status":"ENTERABLE""#;
/// Nothing that is said is longer, headers included.
const LONGEST: usize = 2048;

/// How people listen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Channel {
    Events,
    Socket,
}

/// Who heard what, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard {
    pub(super) who: usize,
    pub(super) what: What,
    pub(super) at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The first word: they wait.
    Place,
    /// It is their turn.
    Turn,
    /// It is somebody else's turn, which is none of their business.
    Gossip,
    /// The pod hung up.
    End,
}

/// One of them.
struct Ear {
    who: usize,
    /// What their own ticket says before its status.
    own: Vec<u8>,
    /// What has come and may be the beginning of something.
    held: Vec<u8>,
    greeted: bool,
    tell: UnboundedSender<Heard>,
}

impl Channel {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Events => "SSE stream",
            Self::Socket => "WebSocket",
        }
    }

    fn request(self, address: &str) -> String {
        match self {
            Self::Events => format!("GET {address}/events HTTP/1.1\r\nhost: bench\r\n\r\n"),
            Self::Socket => format!(
                "GET {address}/ws HTTP/1.1\r\nhost: bench\r\nconnection: upgrade\r\n\
                 upgrade: websocket\r\nsec-websocket-version: 13\r\n\
                 sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
            ),
        }
    }

    /// Opens a stream and listens to it until the set of ears is dropped.
    pub(super) async fn open(
        self,
        server: &str,
        (who, address): (usize, &str),
        ears: &mut JoinSet<anyhow::Result<()>>,
        tell: &UnboundedSender<Heard>,
    ) -> anyhow::Result<()> {
        let mut stream = TcpStream::connect(server).await?;
        stream.write_all(self.request(address).as_bytes()).await?;
        let token = address.rsplit('/').next().unwrap_or_default();
        let own = format!(r#""token":"{token}","#).into_bytes();
        let (held, tell) = (Vec::with_capacity(LONGEST), tell.clone());
        ears.spawn(Ear { who, own, held, greeted: false, tell }.listen(stream));
        Ok(())
    }
}

impl Ear {
    async fn listen(mut self, mut stream: TcpStream) -> anyhow::Result<()> {
        while stream.read_buf(&mut self.held).await.unwrap_or(0) > 0 {
            if !self.greeted {
                self.greet()?;
            }
            self.understand();
        }
        self.tell(What::End);
        Ok(())
    }

    fn greet(&mut self) -> anyhow::Result<()> {
        let head = &self.held[..self.held.len().min(TAKEN[0].len())];
        let words = String::from_utf8_lossy(&self.held);
        ensure!(TAKEN.iter().any(|taken| taken.starts_with(head)), "refused: {words}");
        if find(&self.held, WAITING).is_some() {
            self.greeted = true;
            self.tell(What::Place);
        }
        Ok(())
    }

    /// Counts the turns that are told, and keeps what may be the beginning of the next.
    fn understand(&mut self) {
        while let Some(at) = find(&self.held, ENTERABLE) {
            let own = self.held[..at].ends_with(&self.own);
            self.tell(if own { What::Turn } else { What::Gossip });
            self.held.drain(..at + ENTERABLE.len());
        }
        if self.greeted {
            let keep = (self.own.len() + ENTERABLE.len()).min(self.held.len());
            self.held.drain(..self.held.len() - keep);
        }
    }

    fn tell(&self, what: What) {
        // Nobody is interested any more once the contest is over.
        let _ = self.tell.send(Heard { who: self.who, what, at: Instant::now() });
    }
}

fn find(text: &[u8], words: &[u8]) -> Option<usize> {
    text.windows(words.len()).position(|some| some == words)
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn a_turn_is_heard_once_however_it_is_cut_and_only_the_own_counts() {
        let all = concat!(
            "HTTP/1.1 200 OK\r\n\r\n",
            r#"{"token":"kim-1","status":"WAITING"}"#,
            r#"{"token":"kim-1","status":"ENTERABLE","pass":"x"}"#,
            r#"{"token":"lee-2","status":"ENTERABLE"}"#,
        );
        for size in [1, 7, 40, 1000] {
            let (tell, mut heard) = unbounded_channel();
            let own = br#""token":"kim-1","#.to_vec();
            let mut ear = Ear { who: 0, own, held: Vec::new(), greeted: false, tell };
            for piece in all.as_bytes().chunks(size) {
                ear.held.extend(piece);
                if !ear.greeted {
                    ear.greet().unwrap();
                }
                ear.understand();
            }
            let told: Vec<_> = std::iter::from_fn(|| heard.try_recv().ok()?.what.into()).collect();
            assert_eq!(told, [What::Place, What::Turn, What::Gossip], "in pieces of {size}");
        }
    }
}
