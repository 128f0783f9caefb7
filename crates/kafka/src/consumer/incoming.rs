//! A message as it was read.

use rdkafka::message::{BorrowedMessage, Headers, Message, OwnedHeaders};

use daegi_domain::{Topic, Topics};

/// A message and where it came from.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// What it is about.
    pub topic: Topic,
    /// The partition it was in.
    pub partition: i32,
    /// Its place there.
    pub offset: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its body; none is a tombstone.
    pub body: Option<Vec<u8>>,
    /// What was said about it.
    pub headers: OwnedHeaders,
}

impl Incoming {
    /// None for a topic that was not asked for.
    pub(super) fn of(message: &BorrowedMessage<'_>, topics: &Topics) -> Option<Self> {
        Some(Self {
            topic: topics.named(message.topic())?,
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(Into::into),
            body: message.payload().map(Into::into),
            headers: message.headers().map(|headers| headers.detach()).unwrap_or_default(),
        })
    }

    pub(super) fn place(&self) -> (Topic, i32) {
        (self.topic, self.partition)
    }

    /// The text of a header, if there is one.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|header| header.key == name)?;
        std::str::from_utf8(header.value?).ok()
    }
}
