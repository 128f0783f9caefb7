//! Somebody who listens over a WebSocket, on a real connection.

use daegi_runtime::http::{Limits, serve};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::harness::{MAX_STREAMS, World, ticket};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn served(world: &World) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = serve(listener, world.public.clone(), Limits::default(), world.shutdown.clone());
    world.shutdown.spawn("public", serving);
    format!("ws://{address}")
}

async fn dial(base: &str, token: &str) -> Result<Socket, Error> {
    let uri = format!("{base}{}/ws", ticket("concert", token));
    Ok(connect_async(uri).await?.0)
}

/// The next ticket, or how the socket closed.
async fn heard(socket: &mut Socket) -> Result<Value, CloseFrame> {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => return Ok(serde_json::from_str(&text).unwrap()),
            Message::Close(frame) => return Err(frame.unwrap()),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_socket_tells_what_a_poll_answers_and_closes_after_the_end() {
    let world = World::with_item("concert").await;
    let (kim, lee) = (world.token("concert", "kim").await, world.token("concert", "lee").await);
    let mut socket = dial(&served(&world).await, &lee).await.unwrap();
    socket.send(Message::text("nobody asked for this")).await.unwrap();
    let first = heard(&mut socket).await.unwrap();
    assert_eq!((&first["position"], &first["token"]), (&2.into(), &lee.as_str().into()));
    world.leave("concert", &kim).await;
    assert_eq!(heard(&mut socket).await.unwrap()["position"], 1);
    world.leave("concert", &lee).await;
    assert_eq!(heard(&mut socket).await.unwrap()["status"], "LEFT");
    let closed = heard(&mut socket).await.unwrap_err();
    assert_eq!(u16::from(closed.code), 1000);
    world.end().await;
}

#[tokio::test]
async fn a_pod_that_closes_says_so_in_the_last_frame() {
    let world = World::with_item("concert").await;
    let kim = world.token("concert", "kim").await;
    let mut socket = dial(&served(&world).await, &kim).await.unwrap();
    heard(&mut socket).await.unwrap();
    world.shutdown.now();
    let closed = heard(&mut socket).await.unwrap_err();
    assert_eq!(u16::from(closed.code), 1012);
    let wait: u64 = closed.reason.strip_prefix("retry=").unwrap().parse().unwrap();
    assert!((1_000..=8_000).contains(&wait));
    assert!(socket.next().await.is_none(), "and is gone");
    world.end().await;
}

#[tokio::test]
async fn a_socket_beyond_the_limit_is_refused_and_a_closed_one_makes_room() {
    let world = World::with_item("concert").await;
    let kim = world.token("concert", "kim").await;
    let base = served(&world).await;
    let mut sockets = Vec::new();
    for _ in 0..MAX_STREAMS {
        sockets.push(dial(&base, &kim).await.unwrap());
    }
    let Err(Error::Http(refused)) = dial(&base, &kim).await else { panic!("not refused") };
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    drop(sockets.pop());
    let again = async || dial(&base, &kim).await.is_ok();
    daegi_testkit::eventually(crate::harness::SOON, "there is room again", again).await;
    drop(sockets);
    world.end().await;
}

#[tokio::test]
async fn a_socket_that_a_newer_one_replaced_closes_with_the_code() {
    let world = World::with_held_per_ticket("concert", 1).await;
    let kim = world.token("concert", "kim").await;
    let base = served(&world).await;
    let mut older = dial(&base, &kim).await.unwrap();
    heard(&mut older).await.unwrap();
    let mut newer = dial(&base, &kim).await.unwrap();
    heard(&mut newer).await.unwrap();
    let closed = loop {
        if let Err(closed) = heard(&mut older).await {
            break closed;
        }
    };
    assert_eq!((u16::from(closed.code), closed.reason.as_str()), (1008, "RATE_LIMITED"));
    drop(newer);
    world.end().await;
}
