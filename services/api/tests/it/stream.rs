//! Somebody who listens to server-sent events, through the router.

use axum::body::Body;
use axum::http::Method;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::harness::{World, request, ticket};

/// An open stream, read piece by piece.
pub(crate) struct Stream {
    body: Body,
    rest: String,
}

/// What a stream says between two empty lines.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) data: Option<Value>,
    pub(crate) retry: Option<u64>,
}

impl World {
    pub(crate) async fn listen(&self, item: &str, token: &str, last: Option<&str>) -> Stream {
        self.listen_at(&format!("{}/events", ticket(item, token)), last).await
    }

    /// The same for a client that shows the waiting page with texts of this revision.
    pub(crate) async fn listen_with_page(&self, item: &str, token: &str, page: &str) -> Stream {
        self.listen_at(&format!("{}/events?page={page}", ticket(item, token)), None).await
    }

    async fn listen_at(&self, uri: &str, last: Option<&str>) -> Stream {
        let headers: Vec<_> = last.map(|id| ("last-event-id", id)).into_iter().collect();
        let answer = self.raw(request(Method::GET, uri, &headers, "")).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        Stream { body: answer.into_body(), rest: String::new() }
    }
}

impl Stream {
    /// What is said next; none when the stream has ended.
    pub(crate) async fn said(&mut self) -> Option<Said> {
        loop {
            if let Some((block, rest)) = self.rest.split_once("\n\n") {
                let said = block.lines().fold(Said::default(), Said::with);
                self.rest = rest.to_owned();
                return Some(said);
            }
            let frame = self.body.frame().await?.unwrap();
            self.rest += std::str::from_utf8(&frame.into_data().unwrap()).unwrap();
        }
    }

    /// That the stream ends with this problem and without another ticket.
    pub(crate) async fn ends_with(&mut self, code: &str, status: u16) {
        let last = loop {
            let said = self.said().await.unwrap();
            if said.data.is_some() {
                break said;
            }
        };
        assert_eq!(last.name.as_deref(), Some("problem"), "{last:?}");
        let problem = last.data.unwrap();
        assert_eq!((&problem["code"], &problem["status"]), (&code.into(), &status.into()));
        assert_eq!(self.said().await, None, "nothing follows");
    }

    /// The next ticket, past heartbeats.
    pub(crate) async fn ticket(&mut self) -> Value {
        loop {
            let said = self.said().await.unwrap();
            if let Some(ticket) = said.data {
                assert_eq!(said.name.as_deref(), Some("ticket"));
                return ticket;
            }
        }
    }
}

impl Said {
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
