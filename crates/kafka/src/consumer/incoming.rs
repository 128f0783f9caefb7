//! A message as it was read.

use daegi_domain::Topic;
use rdkafka::message::{BorrowedMessage, Headers, Message, OwnedHeaders};

/// A message and where it came from. Borrows what librdkafka has read: copying every message
/// would cost as much as understanding it.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// What it is about.
    pub topic: Topic,
    /// The partition it was in.
    pub partition: i32,
    /// Its place there.
    pub offset: i64,
    /// When it was written, in Unix milliseconds; 0 if nobody said.
    pub at: u64,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its body; none is a tombstone.
    pub body: Option<&'a [u8]>,
    message: &'a BorrowedMessage<'a>,
}

impl<'a> Incoming<'a> {
    pub(super) fn of(message: &'a BorrowedMessage<'a>, topic: Topic) -> Self {
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

    /// The text of a header, if there is one.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&'a str> {
        let header = self.message.headers()?.iter().find(|header| header.key == name)?;
        std::str::from_utf8(header.value?).ok()
    }

    /// All that was said about it.
    pub(super) fn headers(&self) -> OwnedHeaders {
        self.message.headers().map(|headers| headers.detach()).unwrap_or_default()
    }
}
