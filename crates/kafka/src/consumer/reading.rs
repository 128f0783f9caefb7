//! What was read in one go, by partition.

use std::collections::{BTreeMap, BTreeSet};

use rdkafka::error::KafkaError;

use crate::Record;

/// What came of one look at the topic.
pub(super) enum Read<M> {
    /// A message.
    Message {
        /// The partition it was in.
        partition: i32,
        /// Its place there.
        offset: i64,
        /// What it says; if nobody can tell, the letter that says so.
        said: Result<M, Box<Record>>,
    },
    /// A partition has been read to its end.
    End(i32),
    /// librdkafka has no message.
    Trouble,
}

/// What was read in one go.
pub(super) struct Sorted<M> {
    pub(super) messages: BTreeMap<i32, Vec<Run<M>>>,
    pub(super) ended: Ended,
}

/// What came with the messages.
#[derive(Default)]
pub(super) struct Ended {
    /// Partitions that have been read to their end.
    pub(super) ends: Vec<i32>,
    /// Whether librdkafka reported trouble.
    pub(super) trouble: bool,
}

/// Messages of one partition that follow each other, and perhaps one behind them that is poison.
pub(super) struct Run<M> {
    pub(super) meanings: Vec<M>,
    /// Where each of them was.
    pub(super) offsets: Vec<i64>,
    /// The dead letter, and where the poison was.
    pub(super) poison: Option<(i64, Box<Record>)>,
}

impl<M> Read<M> {
    pub(super) fn failed(error: &KafkaError) -> Self {
        match error {
            KafkaError::PartitionEOF(partition) => Self::End(*partition),
            error => {
                tracing::debug!(%error, "kafka has no message");
                Self::Trouble
            }
        }
    }
}

impl<M> Sorted<M> {
    pub(super) fn of(chunk: Vec<Read<M>>) -> Self {
        let mut sorted = Self { messages: BTreeMap::new(), ended: Ended::default() };
        for read in chunk {
            match read {
                Read::Message { partition, offset, said } => {
                    push(sorted.messages.entry(partition).or_default(), offset, said);
                }
                Read::End(partition) => sorted.ended.ends.push(partition),
                Read::Trouble => sorted.ended.trouble = true,
            }
        }
        sorted
    }
}

/// Drops what was read of partitions before they went back: it counts for nothing, and comes again.
pub(super) fn forget<M>(read: &mut Vec<Read<M>>, begun: &BTreeSet<i32>) {
    if !begun.is_empty() {
        read.retain(|read| match read {
            Read::Message { partition, .. } | Read::End(partition) => !begun.contains(partition),
            Read::Trouble => true,
        });
    }
}

fn push<M>(runs: &mut Vec<Run<M>>, offset: i64, said: Result<M, Box<Record>>) {
    if runs.last().is_none_or(|run| run.poison.is_some()) {
        runs.push(Run { meanings: Vec::new(), offsets: Vec::new(), poison: None });
    }
    let Some(run) = runs.last_mut() else { return };
    match said {
        Ok(meaning) => {
            run.meanings.push(meaning);
            run.offsets.push(offset);
        }
        Err(letter) => run.poison = Some((offset, letter)),
    }
}
