//! The server loop over real connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use daegi_runtime::Shutdown;
use daegi_runtime::http::{HttpService, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::{exchange, served};

const TEST_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const LAST_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

/// A handler that reports its start and waits until it is released.
#[derive(Clone, Default)]
struct Gate {
    entered: Arc<Notify>,
    open: Arc<Notify>,
}

impl Gate {
    fn router(&self) -> HttpService {
        let gate = self.clone();
        let handler = async move || {
            gate.entered.notify_one();
            gate.open.notified().await;
            "done"
        };
        HttpService::new(Router::new().route("/", get(handler)))
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
        shutdown.stop_now();
        // The loop drops its listener in the same task that sees the token.
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        gate.open.notify_one();
    };
    tokio::join!(answer, ending);
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_request_that_outlives_the_drain_deadline_is_dropped() {
    let (shutdown, gate) = (Shutdown::new(), Gate::default());
    let limits = Limits { drain: Duration::ZERO, ..Limits::default() };
    let address = served(gate.router(), limits, &shutdown).await.unwrap();
    let ending = async {
        gate.entered.notified().await;
        shutdown.stop_now();
    };
    let (answer, ()) = tokio::join!(exchange(address, REQUEST), ending);
    assert!(answer.is_err() || answer.is_ok_and(|text| text.is_empty()));
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn idle_connections_do_not_delay_the_shutdown() {
    let shutdown = Shutdown::new();
    let router = HttpService::new(Router::new().route("/", get(async || "hi")));
    let address = served(router, Limits::default(), &shutdown).await.unwrap();
    let _silent = TcpStream::connect(address).await.unwrap();
    let mut used = TcpStream::connect(address).await.unwrap();
    used.write_all(REQUEST).await.unwrap();
    used.read_exact(&mut [0; 15]).await.unwrap();
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
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
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_client_that_never_completes_its_head_is_disconnected() {
    let shutdown = Shutdown::new();
    let limits = Limits { header_read: Duration::from_millis(20), ..Limits::default() };
    let address = served(HttpService::new(Router::new()), limits, &shutdown).await.unwrap();
    let answer = exchange(address, b"GET / HTTP/1.1\r\nhost:").await.unwrap();
    assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

/// One request over a connection that stays open.
async fn connect_and_request(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    request(&mut stream).await?;
    Ok(stream)
}

async fn request(stream: &mut TcpStream) -> anyhow::Result<()> {
    stream.write_all(REQUEST).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        let read = stream.read_buf(&mut answer).await?;
        anyhow::ensure!(read > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}

fn hello() -> HttpService {
    HttpService::new(Router::new().route("/", get("hello")))
}

#[tokio::test]
async fn a_connection_that_was_used_is_kept_for_the_next_request() {
    let shutdown = Shutdown::new();
    let limits = Limits { header_read: Duration::from_millis(20), ..Limits::default() };
    let address = served(hello(), limits, &shutdown).await.unwrap();
    let mut used = connect_and_request(address).await.unwrap();
    // Connected later without a request: when it is closed, the other one has been idle for longer.
    assert!(!exchange(address, b"").await.unwrap().starts_with("HTTP/1.1 2"));
    request(&mut used).await.unwrap();
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_is_closed_for_a_waiting_client() {
    let shutdown = Shutdown::new();
    let limits =
        Limits { connections: 1, header_read: Duration::from_millis(20), ..Limits::default() };
    let address = served(hello(), limits, &shutdown).await.unwrap();
    let _idle = connect_and_request(address).await.unwrap();
    connect_and_request(address).await.unwrap();
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

/// Sends one request over an open connection. Returns whether the response announces its end.
async fn is_last(stream: &mut TcpStream) -> std::io::Result<bool> {
    stream.write_all(REQUEST).await?;
    let mut response = Vec::new();
    while !response.ends_with(b"hello") {
        assert!(stream.read_buf(&mut response).await? > 0, "closed without notice");
    }
    Ok(String::from_utf8_lossy(&response).contains("connection: close\r\n"))
}

/// Whether the server has closed its side and sent nothing more.
async fn is_closed(stream: &mut TcpStream) -> std::io::Result<bool> {
    Ok(stream.read(&mut [0; 1]).await? == 0)
}

#[tokio::test]
async fn responses_announce_the_end_of_their_connection_while_the_process_drains() {
    let shutdown = Shutdown::new().with_readiness_delay(TEST_TIMEOUT);
    let address = served(hello(), Limits::default(), &shutdown).await.unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    assert!(!is_last(&mut client).await.unwrap());
    let ending = shutdown.clone();
    let ending = shutdown.tracker().spawn(async move { ending.begin().await });
    shutdown.draining().cancelled().await;
    // The listener sees the drain in another task, so the next response may come too early.
    while !is_last(&mut client).await.unwrap() {}
    assert!(is_closed(&mut client).await.unwrap());
    // A client that still connects gets one response.
    let mut late = TcpStream::connect(address).await.unwrap();
    assert!(is_last(&mut late).await.unwrap() && is_closed(&mut late).await.unwrap());
    shutdown.stop_now();
    ending.await.unwrap();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_connection_ends_after_its_number_of_requests() {
    let shutdown = Shutdown::new();
    let limits = Limits { max_requests: 8, ..Limits::default() };
    let address = served(hello(), limits, &shutdown).await.unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    let mut requests = 1;
    while !is_last(&mut client).await.unwrap() {
        requests += 1;
    }
    assert!((4..=8).contains(&requests), "{requests}");
    assert!(is_closed(&mut client).await.unwrap());
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}

#[tokio::test]
async fn a_request_in_flight_outlives_the_age_of_its_connection() {
    let (shutdown, gate) = (Shutdown::new(), Gate::default());
    let limits = Limits { max_age: Duration::ZERO, ..Limits::default() };
    let address = served(gate.router(), limits, &shutdown).await.unwrap();
    let opening = async {
        gate.entered.notified().await;
        gate.open.notify_one();
    };
    let (answer, ()) = tokio::join!(exchange(address, REQUEST), opening);
    let answer = answer.unwrap();
    assert!(answer.contains("connection: close") && answer.ends_with("done"), "{answer}");
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await.unwrap();
}
