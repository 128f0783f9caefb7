//! Records read from the topic, in batches by partition.

use rdkafka::error::KafkaError;
use tokio::time::Instant;

use super::dead_letter::DeadLetter;

/// Maximum number of queued records of one partition, besides those that a worker is applying. It
/// bounds memory while a partition is held. It is large, so that the many changes of a hot item
/// become one store call.
const MAX_RECORDS: usize = 4_096;

/// The same in bytes. The record that crosses the limit is still accepted, so that a record of any
/// size fits.
const MAX_BYTES: usize = 4 << 20;

/// The result of one poll.
pub(super) struct Polled<M> {
    /// The assignment it belongs to.
    pub(super) generation: u64,
    pub(super) fetched: Fetched<M>,
}

/// What librdkafka delivered.
pub(super) enum Fetched<M> {
    /// A record.
    Message(Message<M>),
    /// The end of this partition was reached.
    EndOfPartition(i32),
    /// librdkafka reported an error.
    Error,
}

/// A record and its decoded command.
pub(super) struct Message<M> {
    pub(super) partition: i32,
    pub(super) offset: i64,
    /// Approximate memory use in bytes.
    pub(super) bytes: usize,
    /// The command, or the dead letter of a poison record.
    pub(super) decoded: Result<M, Box<DeadLetter>>,
}

/// The offset of a record and when this process read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) offset: i64,
    pub(super) seen: Instant,
}

/// Records of one partition in their order.
pub(super) struct Batch<M> {
    pub(super) runs: Vec<MessageRun<M>>,
    /// Whether the end of the partition was reached behind them.
    pub(super) has_end: bool,
    records: usize,
    bytes: usize,
}

/// Consecutive records, followed by at most one poison record.
pub(super) struct MessageRun<M> {
    pub(super) commands: Vec<M>,
    /// The position of each command.
    pub(super) positions: Vec<Position>,
    /// The poison record and its dead letter.
    pub(super) poison: Option<(Position, Box<DeadLetter>)>,
}

impl<M> Fetched<M> {
    pub(super) fn failed(error: &KafkaError) -> Self {
        match error {
            KafkaError::PartitionEOF(partition) => Self::EndOfPartition(*partition),
            error => {
                tracing::debug!(%error, "kafka poll failed");
                Self::Error
            }
        }
    }
}

impl<M> Default for Batch<M> {
    fn default() -> Self {
        Self { runs: Vec::new(), has_end: false, records: 0, bytes: 0 }
    }
}

impl<M> Batch<M> {
    pub(super) fn push(&mut self, message: Message<M>, seen: Instant) {
        let Message { offset, bytes, decoded, .. } = message;
        self.records += 1;
        self.bytes += bytes;
        let position = Position { offset, seen };
        if self.runs.last().is_none_or(|run| run.poison.is_some()) {
            self.runs.push(MessageRun {
                commands: Vec::new(),
                positions: Vec::new(),
                poison: None,
            });
        }
        let Some(run) = self.runs.last_mut() else { return };
        match decoded {
            Ok(command) => {
                run.commands.push(command);
                run.positions.push(position);
            }
            Err(letter) => run.poison = Some((position, letter)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records == 0 && !self.has_end
    }

    /// Returns whether the batch has no room, until a worker takes it.
    pub(super) fn is_full(&self) -> bool {
        self.records >= MAX_RECORDS || self.bytes >= MAX_BYTES
    }

    /// Returns when its first record was read; `None` if there is no record.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.runs.first()?.first().map(|position| position.seen)
    }
}

impl<M> MessageRun<M> {
    fn first(&self) -> Option<Position> {
        let poison = self.poison.as_ref().map(|(position, _)| *position);
        self.positions.first().copied().or(poison)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use daegi_domain::{Topic, Topics};
    use rdkafka::message::OwnedHeaders;

    use super::*;

    /// A record of 100 bytes; offsets that end in 3 are poison.
    pub(in crate::consumer) fn message(partition: i32, offset: i64) -> Message<i64> {
        let decoded = if offset % 10 == 3 { Err(letter(partition, offset)) } else { Ok(offset) };
        Message { partition, offset, bytes: 100, decoded }
    }

    fn letter(partition: i32, offset: i64) -> Box<DeadLetter> {
        let (topics, headers) = (Topics::default(), OwnedHeaders::new());
        let (topic, place) = (Topic::ItemChanged, (partition, offset));
        Box::new(DeadLetter::build(&topics, topic, place, "why", None, None, headers))
    }

    fn runs(batch: &Batch<i64>) -> Vec<(Vec<i64>, Option<i64>)> {
        let offsets = |run: &MessageRun<i64>| run.positions.iter().map(|at| at.offset).collect();
        let poison = |run: &MessageRun<i64>| run.poison.as_ref().map(|(at, _)| at.offset);
        batch.runs.iter().map(|run| (offsets(run), poison(run))).collect()
    }

    #[test]
    fn poison_ends_a_run() {
        let mut batch = Batch::default();
        (0..6).for_each(|offset| batch.push(message(0, offset), Instant::now()));
        assert_eq!(runs(&batch), [(vec![0, 1, 2], Some(3)), (vec![4, 5], None)]);
    }

    #[test]
    fn a_batch_is_full_by_records_and_by_bytes() {
        let mut many = Batch::default();
        let mut large = Batch::default();
        for offset in 0..4_096 {
            assert!(!many.is_full());
            many.push(message(0, offset * 10), Instant::now());
        }
        assert!(many.is_full());
        for offset in 0..4 {
            assert!(!large.is_full());
            large.push(Message { bytes: 1 << 20, ..message(0, offset) }, Instant::now());
        }
        assert!(large.is_full());
    }

    #[test]
    fn the_oldest_record_of_a_batch_is_its_first() {
        let mut batch = Batch::default();
        assert_eq!(batch.oldest(), None);
        let first = Instant::now();
        batch.push(message(0, 3), first);
        batch.push(message(0, 4), first + std::time::Duration::from_secs(1));
        assert_eq!(batch.oldest(), Some(first));
    }
}
