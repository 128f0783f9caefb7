//! The server loop over real connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use daegi_runtime::Shutdown;
use daegi_runtime::http::{Guarded, Limits, guarded};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::{exchange, served};

const SOON: Duration = Duration::from_secs(5);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const LAST_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

/// A handler that says when it has begun and waits until it is let go.
#[derive(Clone, Default)]
struct Gate {
    entered: Arc<Notify>,
    open: Arc<Notify>,
}

impl Gate {
    fn router(&self) -> Guarded {
        let gate = self.clone();
        let handler = async move || {
            gate.entered.notify_one();
            gate.open.notified().await;
            "done"
        };
        guarded(Router::new().route("/", get(handler)))
    }
}

#[tokio::test]
async fn a_request_in_flight_finishes_after_the_listener_has_closed() {
    let (shutdown, gate) = (Shutdown::new(), Gate::default());
    let address = served(gate.router(), Limits::default(), &shutdown).await.unwrap();
    let answer = async {
        let answer = exchange(address, REQUEST).await.unwrap();
        assert!(answer.ends_with("done"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    };
    let ending = async {
        gate.entered.notified().await;
        shutdown.now();
        // The loop drops its listener in the same task that sees the token.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        gate.open.notify_one();
    };
    tokio::join!(answer, ending);
    shutdown.wait(SOON).await.unwrap();
}

#[tokio::test]
async fn a_request_that_outlives_the_drain_deadline_is_dropped() {
    let (shutdown, gate) = (Shutdown::new(), Gate::default());
    let limits = Limits { drain: Duration::ZERO, ..Limits::default() };
    let address = served(gate.router(), limits, &shutdown).await.unwrap();
    let ending = async {
        gate.entered.notified().await;
        shutdown.now();
    };
    let (answer, ()) = tokio::join!(exchange(address, REQUEST), ending);
    assert!(answer.is_err() || answer.is_ok_and(|text| text.is_empty()));
    shutdown.wait(SOON).await.unwrap();
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_end() {
    let shutdown = Shutdown::new();
    let router = guarded(Router::new().route("/", get(async || "hi")));
    let address = served(router, Limits::default(), &shutdown).await.unwrap();
    let _silent = TcpStream::connect(address).await.unwrap();
    let mut used = TcpStream::connect(address).await.unwrap();
    used.write_all(REQUEST).await.unwrap();
    used.read_exact(&mut [0; 15]).await.unwrap();
    shutdown.now();
    shutdown.wait(SOON).await.unwrap();
}

#[tokio::test]
async fn more_clients_than_connections_wait_for_their_turn() {
    let (shutdown, gate) = (Shutdown::new(), Gate::default());
    let limits = Limits { connections: 1, ..Limits::default() };
    let address = served(gate.router(), limits, &shutdown).await.unwrap();
    let (first, second) = (exchange(address, LAST_REQUEST), exchange(address, LAST_REQUEST));
    let letting_in = async {
        for _ in 0..2 {
            gate.entered.notified().await;
            gate.open.notify_one();
        }
    };
    let (first, second, ()) = tokio::join!(first, second, letting_in);
    assert!(first.unwrap().ends_with("done"));
    assert!(second.unwrap().ends_with("done"));
    shutdown.now();
    shutdown.wait(SOON).await.unwrap();
}

#[tokio::test]
async fn a_client_that_never_finishes_its_head_is_cut_off() {
    let shutdown = Shutdown::new();
    let limits = Limits { header_read: Duration::from_millis(20), ..Limits::default() };
    let address = served(guarded(Router::new()), limits, &shutdown).await.unwrap();
    let answer = exchange(address, b"GET / HTTP/1.1\r\nhost:").await.unwrap();
    assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    shutdown.now();
    shutdown.wait(SOON).await.unwrap();
}

/// One request over a connection that stays open.
async fn asked(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    ask(&mut stream).await?;
    Ok(stream)
}

async fn ask(stream: &mut TcpStream) -> anyhow::Result<()> {
    stream.write_all(REQUEST).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        let read = stream.read_buf(&mut answer).await?;
        anyhow::ensure!(read > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}

fn hello() -> Guarded {
    guarded(Router::new().route("/", get("hello")))
}

#[tokio::test]
async fn a_connection_that_was_used_is_kept_for_the_next_request() {
    let shutdown = Shutdown::new();
    let limits = Limits { header_read: Duration::from_millis(20), ..Limits::default() };
    let address = served(hello(), limits, &shutdown).await.unwrap();
    let mut used = asked(address).await.unwrap();
    // Came later and has never asked: when it is cut off, the other has been idle for longer.
    assert!(!exchange(address, b"").await.unwrap().starts_with("HTTP/1.1 2"));
    ask(&mut used).await.unwrap();
    shutdown.now();
    shutdown.wait(SOON).await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_makes_room_for_whoever_waits() {
    let shutdown = Shutdown::new();
    let limits =
        Limits { connections: 1, header_read: Duration::from_millis(20), ..Limits::default() };
    let address = served(hello(), limits, &shutdown).await.unwrap();
    let _idle = asked(address).await.unwrap();
    asked(address).await.unwrap();
    shutdown.now();
    shutdown.wait(SOON).await.unwrap();
}
