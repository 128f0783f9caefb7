//! Streams of ticket events: server-sent events and WebSocket.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use daegi_runtime::Problem;
use daegi_runtime::http::QueryParams;
use futures_util::stream;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::tickets::{StreamEvent, Subscription, TicketService, Transport, UnverifiedToken};
use crate::wire::StreamQuery;

/// Delay before a client reconnects after a broken stream.
const RECONNECT_MS: std::ops::RangeInclusive<u64> = 1_000..=3_000;
/// Delay before a superseded client reconnects.
const SUPERSEDED_RECONNECT_MS: u64 = 30_000;
/// Maximum frame from a client. Clients only send control frames.
const MAX_CLIENT_FRAME: usize = 1024;
/// Timeout of sending one message; a slower client is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of the closing handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// `GET …/waiting-queue/{token}/events`
pub(crate) async fn events(
    State(service): State<Arc<TicketService>>,
    presented: UnverifiedToken,
    QueryParams(StreamQuery { page }): QueryParams<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let item = presented.item.clone();
    let subscription = service.subscribe(presented, Transport::Sse, last.to_owned(), page).await?;
    if !last.is_empty() {
        service.visits.reconnected(&item);
    }
    // The server polls this stream only when the connection accepts data, so that a slow client
    // skips intermediate states.
    let events = stream::unfold(subscription, |mut subscription| async {
        let text = sse_frame(subscription.next().await?);
        Some((Ok::<_, Infallible>(text), subscription))
    });
    let hello = format!("retry: {}\n", fastrand::u64(RECONNECT_MS));
    let all = futures_util::StreamExt::chain(stream::iter([Ok(Bytes::from(hello))]), events);
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // nginx buffers responses by default, which would delay events.
        (axum::http::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(all)).into_response())
}

/// Encodes an event. A stream that cannot continue ends with the event `problem`, whose data is the
/// problem that a poll would return.
fn sse_frame(event: StreamEvent) -> Bytes {
    let text = match event {
        StreamEvent::Ticket { id, ticket } => {
            // Serialization of strings and numbers cannot fail, and writes one line.
            let json = serde_json::to_string(&ticket).unwrap_or_default();
            format!("id: {id}\nevent: ticket\ndata: {json}\n\n")
        }
        StreamEvent::Page(page) => {
            // Has no id, because `Last-Event-ID` names the last ticket event.
            let json = serde_json::to_string(&*page).unwrap_or_default();
            format!("event: page\ndata: {json}\n\n")
        }
        StreamEvent::Reconnect(ms) => format!("retry: {ms}\n\n"),
        StreamEvent::KeepAlive => ":\n\n".to_owned(),
        StreamEvent::Failed(error) => {
            // A superseded client that ignores this event reconnects, and would supersede another
            // connection of the ticket. `retry` delays that by 30 s.
            let retry = match error {
                Error::Superseded => format!("retry: {SUPERSEDED_RECONNECT_MS}\n"),
                _ => String::new(),
            };
            let problem = serde_json::to_string(&Problem::from(error)).unwrap_or_default();
            format!("{retry}event: problem\ndata: {problem}\n\n")
        }
    };
    text.into()
}

/// `GET …/waiting-queue/{token}/ws`
pub(crate) async fn socket(
    State(service): State<Arc<TicketService>>,
    presented: UnverifiedToken,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|_| Error::invalid("this address speaks WebSocket only"))?;
    let subscription =
        service.subscribe(presented, Transport::WebSocket, String::new(), None).await?;
    // Small buffers, because a pod has many sockets with little traffic each.
    let upgrade = upgrade
        .read_buffer_size(MAX_CLIENT_FRAME)
        .write_buffer_size(0)
        .max_message_size(MAX_CLIENT_FRAME)
        .max_frame_size(MAX_CLIENT_FRAME);
    Ok(upgrade.on_upgrade(|socket| run_socket(socket, subscription)))
}

async fn run_socket(mut socket: WebSocket, mut subscription: Subscription) {
    loop {
        tokio::select! {
            event = subscription.next() => match ws_message(event) {
                Ok(message) => match timeout(WRITE_TIMEOUT, socket.send(message)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return,
                },
                Err(close_frame) => return close(socket, close_frame).await,
            },
            received = socket.recv() => match received {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
}

/// Returns the message to send, or the frame to close with.
fn ws_message(event: Option<StreamEvent>) -> std::result::Result<Message, CloseFrame> {
    let close_frame = |code, reason: String| CloseFrame { code, reason: reason.into() };
    match event {
        Some(StreamEvent::Ticket { ticket, .. }) => {
            Ok(Message::Text(serde_json::to_string(&ticket).unwrap_or_default().into()))
        }
        // A WebSocket receives no page events: it is opened without a revision.
        Some(StreamEvent::KeepAlive | StreamEvent::Page(_)) => Ok(Message::Ping(Bytes::new())),
        Some(StreamEvent::Reconnect(ms)) => {
            Err(close_frame(close_code::RESTART, format!("retry={ms}")))
        }
        Some(StreamEvent::Failed(error)) => {
            Err(close_frame(close_code::POLICY, error.code().to_string()))
        }
        None => Err(close_frame(close_code::NORMAL, "the ticket has ended".to_owned())),
    }
}

async fn close(mut socket: WebSocket, close_frame: CloseFrame) {
    let handshake = async {
        if socket.send(Message::Close(Some(close_frame))).await.is_ok() {
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    // A client that does not complete the handshake is disconnected.
    let _ = timeout(CLOSE_TIMEOUT, handshake).await;
}
