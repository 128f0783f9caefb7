//! Users who call through the proxy.

use std::io::{Read, Write};
use std::net::TcpStream;

use daegi_kafka::Record;
use daegi_testkit::eventually;
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use super::TEST_TIMEOUT;
use super::fleet::ComposeFleet;

/// Users of the concert that the product service sells.
pub(super) struct VirtualUsers {
    http: Client,
    public: String,
    orders: String,
}

impl VirtualUsers {
    pub(super) fn new(compose: &ComposeFleet) -> Self {
        let (public, orders) = (compose.public.clone(), compose.orders.clone());
        Self { http: compose.http.clone(), public, orders }
    }

    fn line(&self) -> String {
        format!("{}/api/v1/item/concert/waiting-queue", self.public)
    }

    /// Joins the line. Retries until the product service has published the item.
    pub(super) async fn join(&self, user: &str) -> Value {
        let join = async || {
            let response = self.http.post(self.line()).header("user-id", user).send().await.ok()?;
            if response.status() == StatusCode::NOT_FOUND
                || response.status() == StatusCode::BAD_GATEWAY
            {
                return None;
            }
            assert!(response.status().is_success(), "{user}: {response:?}");
            response.json::<Value>().await.ok()
        };
        eventually(TEST_TIMEOUT, "the join succeeds", join).await
    }

    /// Polls once and returns any response.
    pub(super) async fn poll(&self, ticket: &Value) -> Option<Response> {
        let token = ticket["token"].as_str().unwrap();
        self.http.get(format!("{}/{token}", self.line())).send().await.ok()
    }

    async fn until(&self, ticket: &Value, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        eventually(TEST_TIMEOUT, what, async || {
            let now: Value = self.poll(ticket).await?.json().await.ok()?;
            is(&now).then_some(now)
        })
        .await
    }

    /// Joins, orders with the pass, and waits until the ticket ends.
    pub(super) async fn buy(&self, user: &str) {
        let ticket = self.join(user).await;
        let entry =
            self.until(&ticket, "the user is admitted", |now| now["status"] == "ENTERABLE").await;
        let order = json!({ "itemId": "concert" });
        eventually(TEST_TIMEOUT, "the order is placed", async || {
            let order = self.http.post(format!("{}/orders", self.orders)).json(&order);
            let order = order.bearer_auth(entry["pass"].as_str().unwrap()).send().await;
            order.is_ok_and(|placed| placed.status().is_success())
        })
        .await;
        // A declined card ends the ticket with LEFT.
        let ends = [json!("COMPLETED"), json!("LEFT")];
        self.until(&ticket, "the ticket ends", |now| ends.contains(&now["status"])).await;
    }

    /// Checks that the proxy forwards server-sent events without buffering, and WebSocket upgrades.
    pub(super) async fn follow(&self, user: &str) {
        let ticket = self.join(user).await;
        let stream = format!("{}/{}", self.line(), ticket["token"].as_str().unwrap());
        let mut events = self.http.get(format!("{stream}/events")).send().await.unwrap();
        let first = events.chunk().await.unwrap().unwrap();
        let first = String::from_utf8_lossy(&first).into_owned();
        assert!(first.contains(ticket["token"].as_str().unwrap()), "{first}");
        assert_eq!(self.upgrade(&stream), "HTTP/1.1 101");
    }

    fn upgrade(&self, stream: &str) -> String {
        let host = self.public.trim_start_matches("http://");
        let path = stream.trim_start_matches(&self.public);
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

    /// Builds the event of an order service that ends a ticket.
    pub(super) fn order_closed(&self, ticket: &Value) -> Record {
        let order = json!({
            "eventId": "order-of-a-test", "itemId": "concert", "userId": ticket["userId"],
            "token": ticket["token"], "outcome": "COMPLETED", "occurredAt": "2026-01-01T00:00:00Z"
        });
        Record::raw("order.closed", "concert", Some(order.to_string().as_bytes()))
    }
}
