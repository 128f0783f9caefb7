//! The server loop: accepts connections, serves HTTP/1.1, shuts down gracefully.
//!
//! `axum::serve` neither limits connections nor times out header reads, and its shutdown has no
//! deadline. A waiting room needs all three, because its clients arrive at the same time and keep
//! their connections.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::HttpBody;
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::FutureExt;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::budget::Budget;
use super::connection::Client;
use super::idle_timeout::IdleTimeout;
use super::intake::{CountedStream, Intake};
use super::lifetime::Lifetime;
use super::limits::{Limits, Refused};
use super::proxy_protocol::read_header;
use super::{SwappableService, error_metrics};
use crate::shutdown::Shutdown;

/// Maximum size of a request head. Above the limits of [`super::HttpService`] (24 KiB), so that
/// most oversized requests get a problem instead of hyper's empty 431.
const HEAD_BUFFER: usize = 32 * 1024;

/// Delay after an accept that failed for lack of resources, such as file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

/// How long sent bytes may stay unacknowledged before the connection is closed.
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves until the shutdown, then closes the listener and returns. Connections are on the
/// shutdown's tracker; they finish requests in flight and are dropped at the drain deadline.
///
/// Endless streams must watch [`Shutdown::token`].
pub async fn serve(
    listener: TcpListener,
    service: impl Into<SwappableService>,
    limits: Limits,
    shutdown: Shutdown,
) {
    error_metrics::register();
    Refused::register();
    let service = service.into();
    let permits = Arc::new(Semaphore::new(limits.connections));
    let budget = Budget::new(limits.request_buffer);
    let draining = Arc::new(AtomicBool::new(false));
    let watching_drain = async {
        shutdown.draining().cancelled().await;
        draining.store(true, Ordering::Relaxed);
        std::future::pending().await
    };
    let accepting = async {
        loop {
            let (stream, peer, permit) = next_connection(&listener, &permits).await;
            let connection = Connection {
                peer,
                service: service.clone(),
                limits: limits.clone(),
                permits: permits.clone(),
                budget: budget.clone(),
                draining: draining.clone(),
                shutdown: shutdown.clone(),
            };
            shutdown.tracker().spawn(connection.serve(stream, permit));
        }
    };
    tokio::select! {
        () = shutdown.token().cancelled() => {}
        () = accepting => {}
        () = watching_drain => {}
    }
}

async fn next_connection(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    if permits.available_permits() == 0 {
        Refused::Connections.count();
    }
    // The semaphore is never closed, so acquiring a permit succeeds eventually.
    let permit = Arc::clone(permits).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, permit),
            Err(error) => handle_accept_error(&error).await,
        }
    }
}

/// Ignores connections that the client closed before they were accepted. Any other error is a
/// temporary lack of resources: logs it and waits for [`ACCEPT_BACKOFF`] before the next attempt.
async fn handle_accept_error(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionReset) {
        tracing::warn!(%error, "accept failed, retrying");
        tokio::time::sleep(ACCEPT_BACKOFF).await;
    }
}

/// Sets `TCP_USER_TIMEOUT`, so that the kernel closes connections of clients that vanished without
/// a FIN, such as a phone that lost its network. Otherwise the kernel would retransmit for about 15
/// minutes, and a stream would mark its ticket as seen meanwhile.
fn set_user_timeout(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// One connection and what serves it.
struct Connection {
    peer: SocketAddr,
    service: SwappableService,
    limits: Limits,
    permits: Arc<Semaphore>,
    budget: Arc<Budget>,
    draining: Arc<AtomicBool>,
    shutdown: Shutdown,
}

impl Connection {
    async fn serve(mut self, mut stream: TcpStream, _permit: Option<OwnedSemaphorePermit>) {
        // Responses are small and awaited; waiting to fill a packet only adds latency.
        let _ = stream.set_nodelay(true);
        set_user_timeout(&stream);
        if let Err(error) = self.read_proxy_header(&mut stream).await {
            Refused::ProxyHeader.count();
            tracing::debug!(%error, peer = %self.peer, "connection of a proxy refused");
            return;
        }
        let intake = Arc::new(Intake::new(self.budget.clone()));
        let client = Client::new(intake.clone(), Some(self.peer));
        let lifetime = Lifetime::draw(&self.limits, self.draining.clone());
        let respond = service_fn(|request| self.respond(request, &client, &lifetime));
        let connection = http1::Builder::new()
            .timer(IdleTimeout::new(self.limits.clone(), self.permits.clone(), intake.clone()))
            .header_read_timeout(self.limits.idle)
            .max_buf_size(HEAD_BUFFER)
            // Responses are small: copying a body behind its head costs less than a vectored write.
            .writev(false)
            .serve_connection(TokioIo::new(CountedStream::new(stream, intake)), respond)
            .with_upgrades();
        let mut connection = pin!(connection);
        // A child token, because polling a token locks it, and every connection polls at each
        // request.
        let stop = self.shutdown.token().child_token();
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let rest = tokio::time::timeout(self.limits.drain, connection).await;
                rest.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, peer = %self.peer, "connection ended early");
        }
    }

    /// Replaces the peer by the client that a trusted proxy names. Other peers send no header: it would be no valid
    /// request, and the server closes the connection.
    async fn read_proxy_header(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let proxies = self.limits.proxies.as_ref();
        if !proxies.is_some_and(|proxies| proxies.is_trusted(self.peer.ip())) {
            return Ok(());
        }
        let header = tokio::time::timeout(self.limits.header_read, read_header(stream));
        let named = self.shutdown.token().run_until_cancelled(header).await;
        if let Some(client) = named.ok_or(io::ErrorKind::ConnectionAborted)??? {
            self.peer = client;
        }
        Ok(())
    }

    fn respond<'a>(
        &self,
        request: Request<Incoming>,
        client: &'a Client,
        lifetime: &'a Lifetime,
    ) -> impl Future<Output = Result<Response, Infallible>> + use<'a> {
        client.intake.head_complete(!request.body().is_end_stream());
        let response = self.service.current().start(request, client);
        response.map(|mut response| {
            error_metrics::record(&response);
            lifetime.mark_last(&mut response);
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                client.intake.upgraded();
            }
            Ok(response)
        })
    }
}
