//! Streams over a WebSocket, on a real connection.

use daegi_runtime::http::{Limits, serve};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::harness::{Harness, MAX_STREAMS, ticket};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn served(harness: &Harness) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving =
        serve(listener, harness.public.clone(), Limits::default(), harness.shutdown.clone());
    harness.shutdown.spawn("public", serving);
    format!("ws://{address}")
}

async fn dial(base: &str, token: &str) -> Result<Socket, Error> {
    let uri = format!("{base}{}/ws", ticket("concert", token));
    Ok(connect_async(uri).await?.0)
}

/// The next ticket, or how the socket closed.
async fn response(socket: &mut Socket) -> Result<Value, CloseFrame> {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => return Ok(serde_json::from_str(&text).unwrap()),
            Message::Close(frame) => return Err(frame.unwrap()),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_socket_sends_tickets_and_closes_after_the_end() {
    let harness = Harness::with_item("concert").await;
    let (kim, lee) = (harness.token("concert", "kim").await, harness.token("concert", "lee").await);
    let mut socket = dial(&served(&harness).await, &lee).await.unwrap();
    socket.send(Message::text("unexpected")).await.unwrap();
    let first = response(&mut socket).await.unwrap();
    assert_eq!((&first["position"], &first["token"]), (&2.into(), &lee.as_str().into()));
    harness.leave("concert", &kim).await;
    assert_eq!(response(&mut socket).await.unwrap()["position"], 1);
    harness.leave("concert", &lee).await;
    assert_eq!(response(&mut socket).await.unwrap()["status"], "LEFT");
    let closed = response(&mut socket).await.unwrap_err();
    assert_eq!(u16::from(closed.code), 1000);
    harness.end().await;
}

#[tokio::test]
async fn a_pod_that_shuts_down_closes_sockets_with_1012() {
    let harness = Harness::with_item("concert").await;
    let kim = harness.token("concert", "kim").await;
    let mut socket = dial(&served(&harness).await, &kim).await.unwrap();
    response(&mut socket).await.unwrap();
    harness.shutdown.stop_now();
    let closed = response(&mut socket).await.unwrap_err();
    assert_eq!(u16::from(closed.code), 1012);
    let wait: u64 = closed.reason.strip_prefix("retry=").unwrap().parse().unwrap();
    assert!((1_000..=8_000).contains(&wait));
    assert!(socket.next().await.is_none(), "and is gone");
    harness.end().await;
}

#[tokio::test]
async fn a_socket_beyond_the_limit_is_refused_until_another_closes() {
    let harness = Harness::with_item("concert").await;
    let kim = harness.token("concert", "kim").await;
    let base = served(&harness).await;
    let mut sockets = Vec::new();
    for _ in 0..MAX_STREAMS {
        sockets.push(dial(&base, &kim).await.unwrap());
    }
    let Err(Error::Http(refused)) = dial(&base, &kim).await else { panic!("not refused") };
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    drop(sockets.pop());
    let again = async || dial(&base, &kim).await.is_ok();
    daegi_testkit::eventually(crate::harness::TEST_TIMEOUT, "there is room again", again).await;
    drop(sockets);
    harness.end().await;
}

#[tokio::test]
async fn a_superseded_socket_closes_with_its_code() {
    let harness = Harness::with_held_per_ticket("concert", 1).await;
    let kim = harness.token("concert", "kim").await;
    let base = served(&harness).await;
    let mut older = dial(&base, &kim).await.unwrap();
    response(&mut older).await.unwrap();
    let mut newer = dial(&base, &kim).await.unwrap();
    response(&mut newer).await.unwrap();
    let closed = loop {
        if let Err(closed) = response(&mut older).await {
            break closed;
        }
    };
    assert_eq!((u16::from(closed.code), closed.reason.as_str()), (1008, "RATE_LIMITED"));
    drop(newer);
    harness.end().await;
}
