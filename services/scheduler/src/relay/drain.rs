//! One stretch of a partition: the next events are read while earlier ones are on their way.
//!
//! All of it goes through one passage, in order. Whatever fails ends the stretch, and the next one
//! begins with the oldest event that is still there.

use std::collections::VecDeque;

use daegi_kafka::Handed;
use daegi_runtime::Traces;
use daegi_runtime::traces::Span;
use daegi_store::{OutboxBatch, Store};

use super::RelayError;
use super::outlet::{Passage, Told};
use super::recent::Recent;
use super::spans;

/// About how many events are read at once. A batch holds up to 100 of them, or one.
const EVENTS: usize = 1_000;

/// How many batches are read at first, before it is known how large they are.
const FIRST: u32 = 4;

/// The most batches that are read at once, however small they are.
const MOST: u32 = 500;

/// How many reads may be on their way: enough to hide the way to the broker. With the size of a
/// read this bounds what a partition has in memory.
const WINDOW: usize = 4;

/// After so many reads whoever runs this hears how it goes, also under a load that never ends.
const READS: usize = 64;

/// The work on one partition.
pub(super) struct Drain<'a> {
    store: &'a dyn Store,
    passage: &'a Passage<'a>,
    recent: &'a Recent,
    traces: &'a Traces,
    partition: u16,
    on_their_way: VecDeque<Parcel>,
    /// Events that are confirmed and removed.
    done: usize,
}

/// What was read at once, and is on its way.
struct Parcel {
    ids: Vec<String>,
    events: usize,
    told: Told,
    /// Those of the events that are traced.
    spans: Vec<Span>,
    handed: Handed,
}

impl<'a> Drain<'a> {
    pub(super) fn new(
        store: &'a dyn Store,
        passage: &'a Passage<'a>,
        recent: &'a Recent,
        traces: &'a Traces,
        partition: u16,
    ) -> Self {
        Self { store, passage, recent, traces, partition, on_their_way: VecDeque::new(), done: 0 }
    }

    /// Goes on until the outbox was found empty, and says how many events left it.
    pub(super) async fn run(mut self) -> Result<usize, RelayError> {
        let sent = self.send().await;
        if let Err(error @ RelayError::Kafka(_)) = sent {
            return Err(error);
        }
        // The store away in the middle is no reason to forget what the broker was given.
        while let Some(parcel) = self.on_their_way.pop_front() {
            self.settle(parcel).await?;
        }
        sent.map(|()| self.done)
    }

    async fn send(&mut self) -> Result<(), RelayError> {
        let (store, partition) = (self.store, self.partition);
        let read = async |after: Option<&str>, limit| {
            store.outbox_read(partition, after, limit).await.map_err(RelayError::from)
        };
        let mut limit = FIRST;
        let mut batches = read(None, limit).await?;
        for _ in 0..READS {
            let Some(last) = batches.last() else { break };
            let after = last.id.clone();
            let is_end = batches.len() < limit as usize;
            limit = next_limit(&batches);
            if is_end {
                return self.hand_over(batches).await;
            }
            // Redis answers the next read while these are written.
            let (next, handed) = tokio::join!(read(Some(&after), limit), self.hand_over(batches));
            handed?;
            batches = next?;
        }
        Ok(())
    }

    /// Sends events on their way, and waits for the oldest ones where many are.
    async fn hand_over(&mut self, batches: Vec<OutboxBatch>) -> Result<(), RelayError> {
        self.pass_on(batches).await?;
        if self.on_their_way.len() >= WINDOW
            && let Some(oldest) = self.on_their_way.pop_front()
        {
            self.settle(oldest).await?;
        }
        Ok(())
    }

    async fn pass_on(&mut self, batches: Vec<OutboxBatch>) -> Result<(), RelayError> {
        let handed = self.passage.hand_over(&batches, self.traces).await?;
        self.recent.note(&batches);
        let (told, events) = (Told::of(&batches), events(&batches));
        let spans = spans::begun(self.traces, &batches);
        let ids = batches.into_iter().map(|batch| batch.id).collect();
        self.on_their_way.push_back(Parcel { ids, events, told, spans, handed });
        Ok(())
    }

    /// Only here do events leave the outbox.
    async fn settle(&mut self, parcel: Parcel) -> Result<(), RelayError> {
        parcel.handed.confirmed().await?;
        self.passage.count(&parcel.told);
        parcel.spans.into_iter().for_each(|span| self.traces.end(span));
        self.store.outbox_ack(self.partition, &parcel.ids).await?;
        self.done += parcel.events;
        Ok(())
    }
}

fn events(batches: &[OutboxBatch]) -> usize {
    batches.iter().map(|batch| batch.events.len()).sum()
}

/// As many batches as hold about [`EVENTS`], if the next ones are like these.
fn next_limit(batches: &[OutboxBatch]) -> u32 {
    let fitting = EVENTS * batches.len() / events(batches).max(1);
    u32::try_from(fitting).unwrap_or(MOST).clamp(1, MOST)
}
