//! Somebody who comes through the proxy.

use std::io::{Read, Write};
use std::net::TcpStream;

use daegi_kafka::Record;
use daegi_testkit::eventually;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use super::SOON;
use super::stage::Stage;

/// People of the concert that the product service sells.
pub(super) struct People {
    http: Client,
    door: String,
    orders: String,
}

impl People {
    pub(super) fn of(stage: &Stage) -> Self {
        Self { http: stage.http.clone(), door: stage.public.clone(), orders: stage.orders.clone() }
    }

    fn line(&self) -> String {
        format!("{}/api/v1/item/concert/waiting-queue", self.door)
    }

    /// Takes a place; the line opens when the product service says so.
    pub(super) async fn join(&self, user: &str) -> Value {
        let join = async || {
            let answer = self.http.post(self.line()).header("user-id", user).send().await.ok()?;
            if answer.status() == StatusCode::NOT_FOUND
                || answer.status() == StatusCode::BAD_GATEWAY
            {
                return None;
            }
            assert!(answer.status().is_success(), "{user}: {answer:?}");
            answer.json::<Value>().await.ok()
        };
        eventually(SOON, "somebody has a place", join).await
    }

    /// Asks how things stand, whatever the answer.
    pub(super) async fn ask(&self, ticket: &Value) -> Option<Response> {
        let token = ticket["token"].as_str().unwrap();
        self.http.get(format!("{}/{token}", self.line())).send().await.ok()
    }

    async fn until(&self, ticket: &Value, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        eventually(SOON, what, async || {
            let now: Value = self.ask(ticket).await?.json().await.ok()?;
            is(&now).then_some(now)
        })
        .await
    }

    /// Waits, orders with the pass, and is done.
    pub(super) async fn buy(&self, user: &str) {
        let ticket = self.join(user).await;
        let turn = self.until(&ticket, "their turn", |now| now["status"] == "ENTERABLE").await;
        let order = json!({ "itemId": "concert" });
        eventually(SOON, "an order", async || {
            let order = self.http.post(format!("{}/orders", self.orders)).json(&order);
            let order = order.bearer_auth(turn["pass"].as_str().unwrap()).send().await;
            order.is_ok_and(|placed| placed.status().is_success())
        })
        .await;
        // A few cards are refused, which ends the ticket, too.
        let ends = [json!("COMPLETED"), json!("LEFT")];
        self.until(&ticket, "the ticket's end", |now| ends.contains(&now["status"])).await;
    }

    /// Events come through the proxy as they happen, and so does a WebSocket.
    pub(super) async fn listen(&self, user: &str) {
        let ticket = self.join(user).await;
        let stream = format!("{}/{}", self.line(), ticket["token"].as_str().unwrap());
        let mut events = self.http.get(format!("{stream}/events")).send().await.unwrap();
        let first = events.chunk().await.unwrap().unwrap();
        let first = String::from_utf8_lossy(&first).into_owned();
        assert!(first.contains(ticket["token"].as_str().unwrap()), "{first}");
        assert_eq!(self.upgrade(&stream), "HTTP/1.1 101");
    }

    fn upgrade(&self, stream: &str) -> String {
        let host = self.door.trim_start_matches("http://");
        let path = stream.trim_start_matches(&self.door);
        let mut socket = TcpStream::connect(host).unwrap();
        let head = format!(
            "GET {path}/ws HTTP/1.1\r\nhost: {host}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut status = [0; 12];
        socket.read_exact(&mut status).unwrap();
        String::from_utf8_lossy(&status).into_owned()
    }

    /// What an order service says when it is done with a ticket.
    pub(super) fn order_closed(&self, ticket: &Value) -> Record {
        let order = json!({
            "eventId": "order-of-a-test", "itemId": "concert", "userId": ticket["userId"],
            "token": ticket["token"], "outcome": "COMPLETED", "occurredAt": "2026-01-01T00:00:00Z"
        });
        Record::raw("order.closed", "concert", Some(order.to_string().as_bytes()))
    }
}
