//! A record that cannot be decoded, for the dead-letter topic.
//!
//! A dead letter is the record as it was, with headers that name the reason and the source. A record
//! that Kafka accepted on the source topic may be too large for the dead-letter topic, because the added
//! headers count and because the limits of producer, broker and topic differ. Such a letter is cut, and
//! two more headers hold the length and the SHA-256 of the original body.

use std::fmt::Write as _;

use daegi_domain::{Topic, Topics};
use rdkafka::message::{Header, Headers, OwnedHeaders};
use sha2::{Digest, Sha256};

use super::InboundMessage;
use crate::Record;

/// Bytes of key, headers and body that a letter may have, largest first. The first is below the
/// producer's `message.max.bytes` of 1,000,000 with room for the added headers. The others follow when
/// the broker refuses a letter as too large, because the topic's `max.message.bytes` is lower.
const LIMITS: [usize; 3] = [950_000, 65_536, 4_096];

/// Divisor of the limit of a cut letter: the key and the original headers each keep at most an eighth.
const KEY_SHARE: usize = 8;

/// Maximum length of the reason in bytes, because a parser's message may quote the whole record.
const MAX_REASON: usize = 1_024;

/// A dead letter that the broker has not confirmed yet.
#[derive(Debug)]
pub(super) struct DeadLetter {
    topic: String,
    key: Option<Vec<u8>>,
    body: Option<Vec<u8>>,
    headers: OwnedHeaders,
    added: Vec<(&'static str, String)>,
    limit: usize,
}

impl DeadLetter {
    /// The letter of a record, cut if it is larger than the first limit.
    pub(super) fn new(message: &InboundMessage<'_>, reason: &str, topics: &Topics) -> Self {
        let (key, body) = (message.key.map(Into::into), message.body.map(Into::into));
        let InboundMessage { topic, partition, offset, .. } = *message;
        Self::build(topics, topic, (partition, offset), reason, key, body, message.headers())
    }

    pub(super) fn build(
        topics: &Topics,
        topic: Topic,
        (partition, offset): (i32, i64),
        reason: &str,
        key: Option<Vec<u8>>,
        body: Option<Vec<u8>>,
        headers: OwnedHeaders,
    ) -> Self {
        let added = vec![
            ("dlq_reason", bounded(reason).to_owned()),
            ("dlq_topic", topics.name(topic).to_owned()),
            ("dlq_partition", partition.to_string()),
            ("dlq_offset", offset.to_string()),
        ];
        let topic = topics.dead_letter_name(topic);
        let mut letter = Self { topic, key, body, headers, added, limit: usize::MAX };
        if letter.bytes() > LIMITS[0] {
            letter.shrink();
        }
        letter
    }

    /// Bytes of key, original headers and body.
    pub(super) fn bytes(&self) -> usize {
        let key = self.key.as_ref().map_or(0, Vec::len);
        key + header_bytes(&self.headers) + self.body.as_ref().map_or(0, Vec::len)
    }

    /// Cuts the letter to the next smaller limit that changes it. Returns `false` if there is none.
    pub(super) fn shrink(&mut self) -> bool {
        let bytes = self.bytes();
        let smaller = LIMITS.into_iter().find(|limit| *limit < self.limit.min(bytes));
        let Some(limit) = smaller else { return false };
        if self.limit == usize::MAX {
            let original = self.body.as_deref().unwrap_or_default();
            self.added.push(("dlq_original_bytes", original.len().to_string()));
            self.added.push(("dlq_original_sha256", sha256_hex(original)));
        }
        self.limit = limit;
        let share = limit / KEY_SHARE;
        if let Some(key) = &mut self.key {
            key.truncate(share);
        }
        self.headers = first_headers(&self.headers, share);
        let rest = limit - (self.bytes() - self.body.as_ref().map_or(0, Vec::len));
        if let Some(body) = &mut self.body {
            body.truncate(rest);
            body.shrink_to_fit();
        }
        true
    }

    /// The record to publish.
    pub(super) fn record(&self) -> Record {
        let headers = self.added.iter().fold(self.headers.clone(), |headers, (key, value)| {
            headers.insert(Header { key, value: Some(value) })
        });
        let (topic, key, body) = (self.topic.clone(), self.key.clone(), self.body.clone());
        Record { topic, key, body, headers }
    }
}

/// Returns the longest prefix of whole characters within [`MAX_REASON`].
fn bounded(reason: &str) -> &str {
    let end = (0..=MAX_REASON.min(reason.len())).rev().find(|end| reason.is_char_boundary(*end));
    &reason[..end.unwrap_or(0)]
}

fn header_bytes(headers: &OwnedHeaders) -> usize {
    headers.iter().map(|header| header.key.len() + header.value.map_or(0, <[u8]>::len)).sum()
}

/// The leading headers that together have at most this many bytes.
fn first_headers(headers: &OwnedHeaders, limit: usize) -> OwnedHeaders {
    let mut bytes = 0;
    let fitting = headers.iter().take_while(|header| {
        bytes += header.key.len() + header.value.map_or(0, <[u8]>::len);
        bytes <= limit
    });
    fitting.fold(OwnedHeaders::new(), OwnedHeaders::insert)
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(key: usize, header: usize, body: usize) -> DeadLetter {
        let value = vec![b'h'; header];
        let headers = OwnedHeaders::new()
            .insert(Header { key: "first", value: Some("1") })
            .insert(Header { key: "second", value: Some(&value) });
        let (key, body) = (Some(vec![b'k'; key]), Some(vec![b'b'; body]));
        let topics = Topics::default();
        DeadLetter::build(&topics, Topic::ItemChanged, (3, 7), "why", key, body, headers)
    }

    fn header(record: &Record, name: &str) -> Option<String> {
        let found = record.headers.iter().find(|header| header.key == name)?;
        Some(String::from_utf8(found.value?.to_vec()).unwrap())
    }

    #[test]
    fn a_letter_that_fits_is_the_whole_record() {
        let record = letter(10, 20, 900_000).record();
        assert_eq!(record.topic, "item.changed.dlq");
        assert_eq!(record.body.as_ref().unwrap().len(), 900_000);
        assert_eq!(header(&record, "dlq_reason").unwrap(), "why");
        assert_eq!(header(&record, "dlq_partition").unwrap(), "3");
        assert_eq!(header(&record, "dlq_offset").unwrap(), "7");
        assert_eq!(header(&record, "dlq_original_bytes"), None);
        assert_eq!(header(&record, "second").unwrap().len(), 20);
    }

    #[test]
    fn a_large_letter_is_cut_and_names_size_and_hash_of_the_original() {
        let mut letter = letter(10, 20, 1_020_000);
        let hash = sha256_hex(&vec![b'b'; 1_020_000]);
        for limit in LIMITS {
            assert!(letter.bytes() <= limit, "{} bytes for {limit}", letter.bytes());
            let record = letter.record();
            assert_eq!(header(&record, "dlq_original_bytes").unwrap(), "1020000");
            assert_eq!(header(&record, "dlq_original_sha256").unwrap(), hash);
            assert_eq!(record.key.as_ref().unwrap().len(), 10);
            let names: Vec<_> = record.headers.iter().map(|header| header.key.to_owned()).collect();
            assert_eq!(names.len(), 2 + 6, "each added once: {names:?}");
            assert_eq!(letter.shrink(), limit != LIMITS[2]);
        }
    }

    #[test]
    fn the_hash_is_sha_256_in_hex() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(b""), empty);
    }

    #[test]
    fn large_keys_and_headers_are_cut_too() {
        let cut = letter(600_000, 600_000, 10);
        let record = cut.record();
        assert_eq!(record.key.as_ref().unwrap().len(), LIMITS[0] / KEY_SHARE);
        assert_eq!(header(&record, "first").unwrap(), "1");
        assert_eq!(header(&record, "second"), None);
        assert_eq!(record.body.as_ref().unwrap().len(), 10);
        assert_eq!(header(&record, "dlq_original_bytes").unwrap(), "10");
    }

    #[test]
    fn a_small_letter_cannot_shrink() {
        assert!(!letter(10, 20, 1_000).shrink());
        let mut medium = letter(10, 20, 100_000);
        assert!(medium.shrink() && medium.shrink() && !medium.shrink());
    }

    #[test]
    fn a_reason_is_bounded_at_a_character() {
        assert_eq!(bounded("short"), "short");
        let long = "대".repeat(1_000);
        assert_eq!(bounded(&long).len(), 1_023);
    }
}
