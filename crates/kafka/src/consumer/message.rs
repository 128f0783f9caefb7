//! A message as it was received.

use daegi_domain::Topic;
use rdkafka::message::{BorrowedMessage, Headers, Message, OwnedHeaders};

/// A message and its position. It borrows librdkafka's buffer, because copying every message would
/// cost as much as decoding it.
#[derive(Debug, Clone, Copy)]
pub struct InboundMessage<'a> {
    /// The topic.
    pub topic: Topic,
    /// The topic partition.
    pub partition: i32,
    /// The offset in the partition.
    pub offset: i64,
    /// Timestamp in unix milliseconds; 0 if there is none.
    pub at: u64,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The body; `None` is a tombstone.
    pub body: Option<&'a [u8]>,
    message: &'a BorrowedMessage<'a>,
}

impl<'a> InboundMessage<'a> {
    pub(super) fn new(message: &'a BorrowedMessage<'a>, topic: Topic) -> Self {
        let at = message.timestamp().to_millis().unwrap_or(0);
        Self {
            topic,
            partition: message.partition(),
            offset: message.offset(),
            at: u64::try_from(at).unwrap_or(0),
            key: message.key(),
            body: message.payload(),
            message,
        }
    }

    /// Returns the text of a header; `None` if it is missing or not UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let header = self.message.headers()?.iter().find(|header| header.key == name)?;
        std::str::from_utf8(header.value?).ok()
    }

    /// Returns all headers.
    pub(super) fn headers(&self) -> OwnedHeaders {
        self.message.headers().map(|headers| headers.detach()).unwrap_or_default()
    }
}
