//! A message to publish.

use daegi_domain::Topics;
use rdkafka::message::{Header, OwnedHeaders};

use crate::{Event, Result, schema};

/// `ce_source` of every event.
const SOURCE: &str = "/daegi";

/// The extension attribute with the leader's epoch; absent if a user or an order service caused the
/// event.
pub const EPOCH: &str = "ce_epoch";

/// The extension attribute that sorts the events of one item over all topics, compared as text.
pub const SEQUENCE: &str = "ce_sequence";

/// The header with the span of an event, if tracing is on. The name is that of W3C Trace Context,
/// without the prefix `ce_` of CloudEvents, because Kafka clients read it under this name.
pub const TRACEPARENT: &str = "traceparent";

/// Initial capacities, in bytes of body and number of headers, that fit most bodies and all headers
/// of an event, so that neither is reallocated.
const BODY: usize = 512;
const HEADERS: usize = 9;

/// A message and its topic.
#[derive(Debug, Clone)]
pub struct Record {
    /// The name of the topic.
    pub topic: String,
    /// Messages with the same key stay in order.
    pub key: Option<Vec<u8>>,
    /// The body; `None` is a tombstone.
    pub body: Option<Vec<u8>>,
    /// The headers.
    pub headers: OwnedHeaders,
}

impl Record {
    /// Builds the record of an event in the binary mode of CloudEvents 1.0: the body is the event,
    /// the headers are its attributes.
    ///
    /// # Errors
    /// If the event cannot be serialized as JSON.
    ///
    /// # Panics
    /// In debug builds, if the event does not conform to its schema.
    pub fn from_event<E: Event>(event: &E, topics: &Topics) -> Result<Self> {
        let mut body = Vec::with_capacity(BODY);
        serde_json::to_writer(&mut body, event)?;
        debug_assert_eq!(schema::validate::<E>(&body), Ok(()), "{} and its schema", E::TOPIC);
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

    /// Adds a header, such as an extension attribute of CloudEvents.
    #[must_use]
    pub fn with(mut self, header: &str, value: &str) -> Self {
        self.headers = self.headers.insert(Header { key: header, value: Some(value) });
        self
    }

    /// Builds a record of raw bytes, for tests and for services that serialize events themselves.
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
