//! A client of a ticket stream: reconnects after the delay it received, with `Last-Event-ID`.

use std::time::{Duration, Instant};

use reqwest::{Client, Response};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;

/// One user with its own connection.
pub(super) struct StreamClient {
    user: usize,
    http: Client,
    token: String,
    /// The pod of the first connection, and the one to reconnect to.
    pods: [String; 2],
    sender: UnboundedSender<Observation>,
    last_id: String,
    /// The `retry` values received on this connection.
    retries: Vec<Duration>,
}

#[derive(Debug)]
pub(super) struct Observation {
    pub(super) user: usize,
    pub(super) event: StreamEvent,
    pub(super) at: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum StreamEvent {
    /// WAITING at this position.
    Waiting(u64),
    /// The client has reconnected after the delay that the old stream sent last.
    Reconnected { delay: Duration },
    /// The user is admitted.
    Enterable,
}

impl StreamClient {
    pub(super) fn new(
        user: usize,
        http: Client,
        token: &str,
        pods: [String; 2],
        sender: UnboundedSender<Observation>,
    ) -> Self {
        let (token, last_id) = (token.to_owned(), String::new());
        Self { user, http, token, pods, sender, last_id, retries: Vec::new() }
    }

    pub(super) async fn run(mut self) {
        let first = self.open(0).await;
        self.read_stream(first).await;
        // The first `retry` is the default of the stream, the second is the reconnect event.
        let [_, delay] = self.retries[..] else { panic!("retries: {:?}", self.retries) };
        sleep(delay).await;
        let again = self.open(1).await;
        self.report(StreamEvent::Reconnected { delay });
        self.read_stream(again).await;
    }

    async fn open(&self, pod: usize) -> Response {
        let line = format!("{}/api/v1/item/concert/waiting-queue", self.pods[pod]);
        let request = self.http.get(format!("{line}/{}/events", self.token));
        let response = request.header("last-event-id", &self.last_id).send().await.unwrap();
        assert!(response.status().is_success(), "user {}: {response:?}", self.user);
        response
    }

    /// Reads events until the stream ends.
    async fn read_stream(&mut self, mut stream: Response) {
        self.retries.clear();
        let mut text = String::new();
        while let Some(piece) = stream.chunk().await.unwrap() {
            text.push_str(std::str::from_utf8(&piece).unwrap());
            while let Some((line, rest)) = text.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.parse_line(&line);
                text = rest;
            }
        }
    }

    fn parse_line(&mut self, line: &str) {
        match line.split_once(": ") {
            Some(("retry", ms)) => self.retries.push(Duration::from_millis(ms.parse().unwrap())),
            Some(("id", id)) => id.clone_into(&mut self.last_id),
            Some(("data", json)) => self.read_ticket(&serde_json::from_str(json).unwrap()),
            _ => {}
        }
    }

    fn read_ticket(&mut self, ticket: &Value) {
        assert_eq!(ticket["token"], self.token, "token of another user");
        self.report(match ticket["status"].as_str().unwrap() {
            "WAITING" => StreamEvent::Waiting(ticket["position"].as_u64().unwrap()),
            "ENTERABLE" => StreamEvent::Enterable,
            other => panic!("user {}: {other}", self.user),
        });
    }

    fn report(&self, event: StreamEvent) {
        // The receiver is dropped when the test ends.
        let _ = self.sender.send(Observation { user: self.user, event, at: Instant::now() });
    }
}
