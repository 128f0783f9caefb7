//! What was read in one go, by partition.

use std::collections::BTreeMap;

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
        said: Result<M, Record>,
    },
    /// A partition has been read to its end.
    End(i32),
    /// librdkafka has no message.
    Trouble,
}

/// What was read in one go.
pub(super) struct Sorted<M> {
    pub(super) messages: BTreeMap<i32, Vec<Run<M>>>,
    /// Partitions that have been read to their end.
    pub(super) ends: Vec<i32>,
    pub(super) trouble: bool,
}

/// Messages of one partition that follow each other, and perhaps one behind them that is poison.
pub(super) struct Run<M> {
    pub(super) meanings: Vec<M>,
    /// Where each of them was.
    pub(super) offsets: Vec<i64>,
    /// The dead letter, and where the poison was.
    pub(super) poison: Option<(i64, Record)>,
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
        let mut sorted = Self { messages: BTreeMap::new(), ends: Vec::new(), trouble: false };
        for read in chunk {
            match read {
                Read::Message { partition, offset, said } => {
                    push(sorted.messages.entry(partition).or_default(), offset, said);
                }
                Read::End(partition) => sorted.ends.push(partition),
                Read::Trouble => sorted.trouble = true,
            }
        }
        sorted
    }
}

fn push<M>(runs: &mut Vec<Run<M>>, offset: i64, said: Result<M, Record>) {
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
