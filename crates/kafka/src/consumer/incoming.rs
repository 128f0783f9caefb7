//! A message as it was read.

use daegi_domain::Topic;
use rdkafka::message::{BorrowedMessage, Headers, Message, OwnedHeaders};

/// A message and where it came from.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// What it is about.
    pub topic: Topic,
    /// The partition it was in.
    pub partition: i32,
    /// Its place there.
    pub offset: i64,
    /// When it was written, in Unix milliseconds; 0 if nobody said.
    pub at: u64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its body; none is a tombstone.
    pub body: Option<Vec<u8>>,
    /// What was said about it.
    pub headers: OwnedHeaders,
}

impl Incoming {
    pub(super) fn of(message: &BorrowedMessage<'_>, topic: Topic) -> Self {
        let at = message.timestamp().to_millis().unwrap_or(0);
        Self {
            topic,
            partition: message.partition(),
            offset: message.offset(),
            at: u64::try_from(at).unwrap_or(0),
            key: message.key().map(Into::into),
            body: message.payload().map(Into::into),
            headers: message.headers().map(|headers| headers.detach()).unwrap_or_default(),
        }
    }

    /// The text of a header, if there is one.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|header| header.key == name)?;
        std::str::from_utf8(header.value?).ok()
    }
}
