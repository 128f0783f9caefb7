//! A message to be published.

use daegi_domain::Topics;
use rdkafka::message::{Header, OwnedHeaders};

use crate::{Event, Result, schema};

/// Says who wrote an event, to readers who hear from many.
const SOURCE: &str = "/daegi";

/// The extension that names the leader's term in which an event happened; not there where people or
/// order services did it.
pub const EPOCH: &str = "ce_epoch";

/// The extension by whose text the events of one item can be sorted, over all topics.
pub const SEQUENCE: &str = "ce_sequence";

/// The header that names the span in which an event happened, where traces are on: W3C Trace
/// Context, not CloudEvents, because that is where consumers of Kafka look for it.
pub const TRACEPARENT: &str = "traceparent";

/// Room for most bodies, and for the headers with all of the above: neither has to grow.
const BODY: usize = 512;
const HEADERS: usize = 9;

/// A message and where it goes.
#[derive(Debug, Clone)]
pub struct Record {
    /// The topic's name.
    pub topic: String,
    /// Messages of one key stay in order.
    pub key: Option<Vec<u8>>,
    /// The body; none is a tombstone.
    pub body: Option<Vec<u8>>,
    /// What is said about the body.
    pub headers: OwnedHeaders,
}

impl Record {
    /// An event in the binary mode of CloudEvents 1.0: the body is the event, headers tell the
    /// rest.
    ///
    /// # Errors
    /// If the event cannot be written as JSON.
    ///
    /// # Panics
    /// In debug builds, if the event does not conform to its schema.
    pub fn event<E: Event>(event: &E, topics: &Topics) -> Result<Self> {
        let mut body = Vec::with_capacity(BODY);
        serde_json::to_writer(&mut body, event)?;
        debug_assert_eq!(schema::accepts::<E>(&body), Ok(()), "{} and its schema", E::TOPIC);
        Ok(Self {
            topic: topics.name(E::TOPIC).to_owned(),
            key: Some(event.item().as_str().into()),
            body: Some(body),
            headers: headers(&[
                ("ce_specversion", "1.0"),
                ("ce_id", &event.id()),
                ("ce_type", E::TOPIC.event_type()),
                ("ce_source", SOURCE),
                ("ce_time", event.time()),
                ("content-type", "application/json"),
            ]),
        })
    }

    /// The same with another header, such as an extension attribute of CloudEvents.
    #[must_use]
    pub fn with(mut self, header: &str, value: &str) -> Self {
        self.headers = self.headers.insert(Header { key: header, value: Some(value) });
        self
    }

    /// Bytes as they are, for tests and for neighbours who write their own.
    #[must_use]
    pub fn raw(topic: &str, key: &str, body: Option<&[u8]>) -> Self {
        Self {
            topic: topic.to_owned(),
            key: Some(key.into()),
            body: body.map(Into::into),
            headers: OwnedHeaders::new(),
        }
    }
}

fn headers(pairs: &[(&str, &str)]) -> OwnedHeaders {
    pairs.iter().fold(OwnedHeaders::new_with_capacity(HEADERS), |headers, (key, value)| {
        headers.insert(Header { key, value: Some(*value) })
    })
}
