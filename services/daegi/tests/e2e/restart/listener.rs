//! Somebody who listens as a browser does: comes back when told to, and says what was heard last.

use std::time::{Duration, Instant};

use reqwest::{Client, Response};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;

/// One person, with a connection of their own.
pub(super) struct Listener {
    who: usize,
    http: Client,
    token: String,
    /// Where a balancer sends this person, first and after that pod is gone.
    pods: [String; 2],
    tell: UnboundedSender<Said>,
    last_id: String,
    /// Times to come back, as they were told on this connection.
    retries: Vec<Duration>,
}

#[derive(Debug)]
pub(super) struct Said {
    pub(super) who: usize,
    pub(super) what: What,
    pub(super) at: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// Waits, at this position.
    Place(u64),
    /// Listens again, as long after the goodbye as it announced.
    Back { announced: Duration },
    /// It is their turn.
    Turn,
}

impl Listener {
    pub(super) fn new(
        who: usize,
        http: Client,
        token: &str,
        pods: [String; 2],
        tell: UnboundedSender<Said>,
    ) -> Self {
        let (token, last_id) = (token.to_owned(), String::new());
        Self { who, http, token, pods, tell, last_id, retries: Vec::new() }
    }

    pub(super) async fn live(mut self) {
        let first = self.open(0).await;
        self.hear(first).await;
        // The stream's own pace comes first, the goodbye last.
        let [_, goodbye] = self.retries[..] else { panic!("no goodbye: {:?}", self.retries) };
        sleep(goodbye).await;
        let again = self.open(1).await;
        self.tell(What::Back { announced: goodbye });
        self.hear(again).await;
    }

    async fn open(&self, pod: usize) -> Response {
        let line = format!("{}/api/v1/item/concert/waiting-queue", self.pods[pod]);
        let request = self.http.get(format!("{line}/{}/events", self.token));
        let answer = request.header("last-event-id", &self.last_id).send().await.unwrap();
        assert!(answer.status().is_success(), "{}: {answer:?}", self.who);
        answer
    }

    /// Until the stream ends.
    async fn hear(&mut self, mut stream: Response) {
        self.retries.clear();
        let mut text = String::new();
        while let Some(piece) = stream.chunk().await.unwrap() {
            text.push_str(std::str::from_utf8(&piece).unwrap());
            while let Some((line, rest)) = text.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.understand(&line);
                text = rest;
            }
        }
    }

    fn understand(&mut self, line: &str) {
        match line.split_once(": ") {
            Some(("retry", ms)) => self.retries.push(Duration::from_millis(ms.parse().unwrap())),
            Some(("id", id)) => id.clone_into(&mut self.last_id),
            Some(("data", json)) => self.read(&serde_json::from_str(json).unwrap()),
            _ => {}
        }
    }

    fn read(&mut self, ticket: &Value) {
        assert_eq!(ticket["token"], self.token, "of somebody else");
        self.tell(match ticket["status"].as_str().unwrap() {
            "WAITING" => What::Place(ticket["position"].as_u64().unwrap()),
            "ENTERABLE" => What::Turn,
            other => panic!("{}: {other}", self.who),
        });
    }

    fn tell(&self, what: What) {
        // Nobody listens to them any more when the test is over.
        let _ = self.tell.send(Said { who: self.who, what, at: Instant::now() });
    }
}
