//! What nobody can use is kept as it was, with the reason beside it.

use daegi_domain::Topics;
use rdkafka::message::Header;

use super::Incoming;
use crate::Record;

/// The original bytes, key and headers; four headers more say why and where from.
pub(super) fn record(message: &Incoming<'_>, reason: &str, topics: &Topics) -> Record {
    let said = [
        ("dlq_reason", reason.to_owned()),
        ("dlq_topic", topics.name(message.topic).to_owned()),
        ("dlq_partition", message.partition.to_string()),
        ("dlq_offset", message.offset.to_string()),
    ];
    let headers = said.iter().fold(message.headers(), |headers, (key, value)| {
        headers.insert(Header { key, value: Some(value) })
    });
    Record {
        topic: topics.dead_letters(message.topic),
        key: message.key.map(Into::into),
        body: message.body.map(Into::into),
        headers,
    }
}
