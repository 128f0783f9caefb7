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
use crate::room::{Follower, Kind, News, Presented, Room};
use crate::wire::StreamQuery;

/// When a client whose stream broke off comes back, in milliseconds.
const RECONNECT_MS: std::ops::RangeInclusive<u64> = 1_000..=3_000;
/// The same for a client whose ticket has too many connections.
const SUPERSEDED_RECONNECT_MS: u64 = 30_000;
/// Nothing is expected from clients but the protocol's own small frames.
const MAX_HEARD: usize = 1024;
/// How long a reader may take for one message before it counts as gone.
const READ_TIME: Duration = Duration::from_secs(30);
/// How long a client may take to answer that the socket closes.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// `GET …/waiting-queue/{token}/events`
pub(crate) async fn events(
    State(room): State<Arc<Room>>,
    presented: Presented,
    QueryParams(StreamQuery { page }): QueryParams<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let follower = room.follow(presented, Kind::Events, last.to_owned(), page).await?;
    // Polled only when the connection has room: a slow reader skips what is in between.
    let told = stream::unfold(follower, |mut follower| async {
        let text = event(follower.next().await?);
        Some((Ok::<_, Infallible>(text), follower))
    });
    let hello = format!("retry: {}\n", fastrand::u64(RECONNECT_MS));
    let all = futures_util::StreamExt::chain(stream::iter([Ok(Bytes::from(hello))]), told);
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // Some proxies hold answers back until they are whole, unless they are told.
        (axum::http::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(all)).into_response())
}

/// The text of news. The last event of a stream that cannot go on is `problem`, whose data is the
/// problem that a poll would answer.
fn event(news: News) -> Bytes {
    let text = match news {
        News::Ticket { id, ticket } => {
            // A struct of strings and numbers always has a JSON form, on one line.
            let json = serde_json::to_string(&ticket).unwrap_or_default();
            format!("id: {id}\nevent: ticket\ndata: {json}\n\n")
        }
        News::Page(page) => {
            // Without an id: `Last-Event-ID` names the last ticket event.
            let json = serde_json::to_string(&*page).unwrap_or_default();
            format!("event: page\ndata: {json}\n\n")
        }
        News::ComeBack(ms) => format!("retry: {ms}\n\n"),
        News::Heartbeat => ":\n\n".to_owned(),
        News::Lost(error) => {
            // A client that does not know the event comes back, but not to take a slot again soon.
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
    State(room): State<Arc<Room>>,
    presented: Presented,
    upgrade: std::result::Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|_| Error::invalid("this address speaks WebSocket only"))?;
    let follower = room.follow(presented, Kind::Socket, String::new(), None).await?;
    // Small buffers: there are many sockets, and little is said in each.
    let upgrade = upgrade
        .read_buffer_size(MAX_HEARD)
        .write_buffer_size(0)
        .max_message_size(MAX_HEARD)
        .max_frame_size(MAX_HEARD);
    Ok(upgrade.on_upgrade(|socket| converse(socket, follower)))
}

async fn converse(mut socket: WebSocket, mut follower: Follower) {
    loop {
        tokio::select! {
            news = follower.next() => match message(news) {
                Ok(said) => match timeout(READ_TIME, socket.send(said)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return,
                },
                Err(goodbye) => return close(socket, goodbye).await,
            },
            heard = socket.recv() => match heard {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
}

/// What is sent, or how the socket closes.
fn message(news: Option<News>) -> std::result::Result<Message, CloseFrame> {
    let goodbye = |code, reason: String| CloseFrame { code, reason: reason.into() };
    match news {
        Some(News::Ticket { ticket, .. }) => {
            Ok(Message::Text(serde_json::to_string(&ticket).unwrap_or_default().into()))
        }
        // A socket has no page: it is opened without a revision.
        Some(News::Heartbeat | News::Page(_)) => Ok(Message::Ping(Bytes::new())),
        Some(News::ComeBack(ms)) => Err(goodbye(close_code::RESTART, format!("retry={ms}"))),
        Some(News::Lost(error)) => Err(goodbye(close_code::POLICY, error.code().to_string())),
        None => Err(goodbye(close_code::NORMAL, "the ticket has ended".to_owned())),
    }
}

async fn close(mut socket: WebSocket, goodbye: CloseFrame) {
    let both_close = async {
        if socket.send(Message::Close(Some(goodbye))).await.is_ok() {
            while let Some(Ok(_)) = socket.recv().await {}
        }
    };
    // A client that does not answer is left alone.
    let _ = timeout(CLOSE_TIME, both_close).await;
}
