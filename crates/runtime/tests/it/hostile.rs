//! Clients that send incomplete requests: their memory is bounded, and others are served.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use daegi_runtime::Shutdown;
use daegi_runtime::http::{FREE_BYTES, HttpService, Limits};
use daegi_runtime::shutdown::TasksStillRunning;
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{exchange, served};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);
const CLIENTS: usize = 300;
/// Room for 10 heads or bodies of [`LARGE`] bytes.
const BUDGET: usize = 10 * (LARGE - FREE_BYTES);
const LARGE: usize = 24 * 1024;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const LAST_REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

fn router() -> HttpService {
    let length = async |body: Bytes| body.len().to_string();
    HttpService::new(Router::new().route("/", get("hello")).route("/length", post(length)))
}

async fn with_budget(shutdown: &Shutdown) -> anyhow::Result<SocketAddr> {
    // Only the budget closes connections.
    let header_read = Duration::from_secs(600);
    let limits = Limits { request_buffer: BUDGET, header_read, ..Limits::default() };
    served(router(), limits, shutdown).await
}

async fn connected(address: SocketAddr, bytes: &[u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    // A server that closes while we send is one of the outcomes.
    let _ = stream.write_all(bytes).await;
    Ok(stream)
}

/// Three hundred clients that send the same bytes and wait.
async fn hostile(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<TcpStream>> {
    try_join_all((0..CLIENTS).map(|_| connected(address, bytes))).await
}

/// Whether the server closes the connection without a response within the timeout.
async fn is_closed(stream: &mut TcpStream) -> bool {
    match timeout(TEST_TIMEOUT, stream.read_u8()).await {
        Ok(read) => read.is_err(),
        Err(_) => false,
    }
}

fn partial_head(length: usize) -> Vec<u8> {
    let mut head = b"GET / HTTP/1.1\r\nhost: a\r\nx: ".to_vec();
    head.resize(length, b'x');
    head
}

fn post_of(length: usize) -> Vec<u8> {
    let head = "POST /length HTTP/1.1\r\nhost: a\r\nconnection: close\r\n";
    let mut request = format!("{head}content-length: {length}\r\n\r\n").into_bytes();
    request.resize(request.len() + length, b'x');
    request
}

async fn ended(shutdown: Shutdown) -> Result<(), TasksStillRunning> {
    shutdown.stop_now();
    shutdown.wait(TEST_TIMEOUT).await
}

#[tokio::test]
async fn a_partial_head_after_a_complete_request_times_out() {
    let shutdown = Shutdown::new();
    let limits = Limits { header_read: Duration::from_millis(50), ..Limits::default() };
    let address = served(router(), limits, &shutdown).await.unwrap();
    let follow_ups = [vec![b'G'], partial_head(300), partial_head(LARGE)];
    for follow_up in follow_ups {
        let mut stream = connected(address, REQUEST).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"hello") {
            assert!(stream.read_buf(&mut answer).await.unwrap() > 0);
        }
        stream.write_all(&follow_up).await.unwrap();
        assert!(is_closed(&mut stream).await, "{} bytes", follow_up.len());
    }
    // Both in one packet.
    let mut stream = connected(address, &[REQUEST, b"GET"].concat()).await.unwrap();
    let mut answer = Vec::new();
    let read = timeout(TEST_TIMEOUT, stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "{}", String::from_utf8_lossy(&answer));
    ended(shutdown).await.unwrap();
}

#[tokio::test]
async fn partial_heads_hold_no_more_than_the_budget_and_others_are_served() {
    let shutdown = Shutdown::new();
    let address = with_budget(&shutdown).await.unwrap();
    let head = partial_head(LARGE);
    let mut hostile = hostile(address, &head).await.unwrap();
    let closing: FuturesUnordered<_> = hostile.iter_mut().map(TcpStream::read_u8).collect();
    let closed = closing.take(CLIENTS - BUDGET / (LARGE - FREE_BYTES)).count();
    timeout(TEST_TIMEOUT, closed).await.expect("those that do not fit into the budget are cut off");
    let answer = exchange(address, LAST_REQUEST).await.unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    drop(hostile);
    ended(shutdown).await.unwrap();
}

#[tokio::test]
async fn bodies_over_the_budget_get_503_and_small_ones_are_accepted() {
    let shutdown = Shutdown::new();
    let address = with_budget(&shutdown).await.unwrap();
    let whole = post_of(LARGE);
    let partial = &whole[..whole.len() / 2];
    let hostile = hostile(address, partial).await.unwrap();
    let refused = || async {
        let answer = exchange(address, &whole).await.unwrap();
        answer.starts_with("HTTP/1.1 503 ").then_some(answer)
    };
    // Until the server has read the partial ones.
    let answer = timeout(TEST_TIMEOUT, async {
        loop {
            if let Some(answer) = refused().await {
                break answer;
            }
        }
    });
    let answer = answer.await.unwrap();
    assert!(answer.contains("retry-after: 1") && answer.contains("UNAVAILABLE"), "{answer}");
    let answer = exchange(address, &post_of(1024)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("1024"), "{answer}");
    drop(hostile);
    // Their bytes are released.
    let served = timeout(TEST_TIMEOUT, async { while refused().await.is_some() {} });
    served.await.unwrap();
    ended(shutdown).await.unwrap();
}
