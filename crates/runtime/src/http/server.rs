//! The server loop: accept, serve HTTP/1.1, end gracefully.
//!
//! `axum::serve` neither bounds connections nor reads headers with a timeout, and waits without a
//! deadline when it ends; people in a waiting room come all at once and keep their connections.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
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
use super::client::Client;
use super::idle::Idle;
use super::intake::{CountedStream, Intake};
use super::limits::{Limits, Refused};
use super::{Replaceable, trouble};
use crate::shutdown::Shutdown;

/// The largest head. Above the guard's own limits (24 KiB), so that most oversized requests get a
/// problem instead of hyper's bare 431.
const HEAD_BUFFER: usize = 32 * 1024;

/// The pause after an accept that failed for want of resources, such as file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a client may leave what was sent to it unconfirmed.
#[cfg(target_os = "linux")]
const UNCONFIRMED: Duration = Duration::from_secs(30);

/// Serves until the shutdown, then closes the listener and returns. Connections live on the
/// shutdown's tracker, finish what is in flight and are dropped at the drain deadline.
///
/// Streams that have no end of their own must watch [`Shutdown::token`].
pub async fn serve(
    listener: TcpListener,
    service: impl Into<Replaceable>,
    limits: Limits,
    shutdown: Shutdown,
) {
    trouble::show();
    Refused::show();
    let service = service.into();
    let permits = Arc::new(Semaphore::new(limits.connections));
    let budget = Budget::new(limits.request_buffer);
    let accepting = async {
        loop {
            let (stream, peer, permit) = next_connection(&listener, &permits).await;
            let connection = Connection {
                peer,
                service: service.clone(),
                limits: limits.clone(),
                permits: permits.clone(),
                budget: budget.clone(),
                shutdown: shutdown.clone(),
            };
            shutdown.tracker().spawn(connection.serve(stream, permit));
        }
    };
    shutdown.token().run_until_cancelled(accepting).await.unwrap_or(())
}

async fn next_connection(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    if permits.available_permits() == 0 {
        Refused::Connections.count();
    }
    // The semaphore is never closed, so there is always a permit in the end.
    let permit = Arc::clone(permits).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, permit),
            Err(error) => after_failed_accept(&error).await,
        }
    }
}

/// A client that left before it was accepted is nothing. Everything else is scarcity, which
/// passes; a listener that died of it would take the service with it.
async fn after_failed_accept(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionReset) {
        tracing::warn!(%error, "cannot accept a connection, pausing");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// A phone that lost its network says no goodbye. Without this the kernel would go on for a quarter
/// of an hour, and whoever listens would count as there all the while.
fn give_up_on_the_silent(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(stream).set_tcp_user_timeout(Some(UNCONFIRMED));
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
}

/// One client's connection and what it needs to be served.
struct Connection {
    peer: SocketAddr,
    service: Replaceable,
    limits: Limits,
    permits: Arc<Semaphore>,
    budget: Arc<Budget>,
    shutdown: Shutdown,
}

impl Connection {
    async fn serve(self, stream: TcpStream, _permit: Option<OwnedSemaphorePermit>) {
        // Answers are small and awaited; waiting to fill a packet only adds latency.
        let _ = stream.set_nodelay(true);
        give_up_on_the_silent(&stream);
        let intake = Arc::new(Intake::new(self.budget.clone()));
        let client = Client::new(intake.clone(), Some(self.peer));
        let answer = service_fn(|request| self.answer(request, &client));
        let connection = http1::Builder::new()
            .timer(Idle::new(self.limits.clone(), self.permits.clone(), intake.clone()))
            .header_read_timeout(self.limits.idle)
            .max_buf_size(HEAD_BUFFER)
            // Answers are small: copying a body behind its head costs less than two pieces to send.
            .writev(false)
            .serve_connection(TokioIo::new(CountedStream::new(stream, intake)), answer)
            .with_upgrades();
        let mut connection = pin!(connection);
        // Of its own: looking at a token locks it, and at each request of every connection.
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

    fn answer<'a>(
        &self,
        request: Request<Incoming>,
        client: &'a Client,
    ) -> impl Future<Output = Result<Response, Infallible>> + use<'a> {
        client.intake.head_complete(!request.body().is_end_stream());
        let answering = self.service.current().begin(request, client);
        answering.map(|response| {
            trouble::count(&response);
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                client.intake.upgraded();
            }
            Ok(response)
        })
    }
}
