//! Client of server-sent events, through the router.

use axum::body::Body;
use axum::http::Method;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::harness::{Harness, request, ticket};

/// An open stream, read chunk by chunk.
pub(crate) struct SseClient {
    body: Body,
    rest: String,
}

/// One event of a stream.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SseEvent {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) data: Option<Value>,
    pub(crate) retry: Option<u64>,
}

impl Harness {
    pub(crate) async fn open_stream(
        &self,
        item: &str,
        token: &str,
        last: Option<&str>,
    ) -> SseClient {
        self.open_stream_at(&format!("{}/events", ticket(item, token)), last).await
    }

    /// Opens a stream for a client that shows page texts of this revision.
    pub(crate) async fn open_stream_with_page(
        &self,
        item: &str,
        token: &str,
        page: &str,
    ) -> SseClient {
        self.open_stream_at(&format!("{}/events?page={page}", ticket(item, token)), None).await
    }

    async fn open_stream_at(&self, uri: &str, last: Option<&str>) -> SseClient {
        let headers: Vec<_> = last.map(|id| ("last-event-id", id)).into_iter().collect();
        let answer = self.raw(request(Method::GET, uri, &headers, "")).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        SseClient { body: answer.into_body(), rest: String::new() }
    }
}

impl SseClient {
    /// Returns the next event, or `None` when the stream has ended.
    pub(crate) async fn next_event(&mut self) -> Option<SseEvent> {
        loop {
            if let Some((block, rest)) = self.rest.split_once("\n\n") {
                let event = block.lines().fold(SseEvent::default(), SseEvent::with);
                self.rest = rest.to_owned();
                return Some(event);
            }
            let frame = self.body.frame().await?.unwrap();
            self.rest += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
        }
    }

    /// Asserts that the stream ends with this problem and without another ticket.
    pub(crate) async fn assert_ends_with(&mut self, code: &str, status: u16) {
        let last = loop {
            let event = self.next_event().await.unwrap();
            if event.data.is_some() {
                break event;
            }
        };
        assert_eq!(last.name.as_deref(), Some("problem"), "{last:?}");
        let problem = last.data.unwrap();
        assert_eq!((&problem["code"], &problem["status"]), (&code.into(), &status.into()));
        assert_eq!(self.next_event().await, None, "nothing follows");
    }

    /// Returns the next ticket and skips keep-alives.
    pub(crate) async fn ticket(&mut self) -> Value {
        loop {
            let event = self.next_event().await.unwrap();
            if let Some(ticket) = event.data {
                assert_eq!(event.name.as_deref(), Some("ticket"));
                return ticket;
            }
        }
    }
}

impl SseEvent {
    fn with(mut self, line: &str) -> Self {
        let (field, value) = line.split_once(": ").unwrap_or((line, ""));
        match field {
            "id" => self.id = Some(value.to_owned()),
            "event" => self.name = Some(value.to_owned()),
            "data" => self.data = Some(serde_json::from_str(value).unwrap()),
            "retry" => self.retry = Some(value.parse().unwrap()),
            _ => assert_eq!(field, ":", "{line}"),
        }
        self
    }
}
