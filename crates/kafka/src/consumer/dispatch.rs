//! The loop that reads a topic and gives each partition's records to its worker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use metrics::gauge;
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{CommitMode, Consumer as _, StreamConsumer};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::catch_up::{CatchUp, assigned, blocking};
use super::partition::{Finished, Work};
use super::queues::Queues;
use super::reading::{Polled, Read};
use super::{Effect, Member, Missing};
use crate::meters;

/// How many records are read before another task on the same thread has a turn.
const PIECE: usize = 1_024;

/// How often a consumer looks whether what it read is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The delay after librdkafka reported an error instead of a record, and before a look that failed is
/// repeated while a partition waits for it.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// How long the broker has to confirm the last offsets of a process that ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Reads one topic until it is stopped.
pub(super) struct Dispatcher<E: Effect> {
    consumer: Arc<StreamConsumer<Member>>,
    work: Arc<Work<E>>,
    stop: CancellationToken,
    catch_up: CatchUp,
    queues: Queues<E::Meaning>,
    next_look: Instant,
    /// Nothing is read before, because librdkafka reported an error.
    reads_from: Instant,
    /// Whether looks fail while a partition waits for them, so that it is logged once.
    is_unsettled: bool,
    /// Partitions whose age was reported, so that those given away are reported as 0.
    reported: BTreeSet<i32>,
}

impl<E: Effect> Dispatcher<E> {
    pub(super) fn new(
        consumer: Arc<StreamConsumer<Member>>,
        work: Arc<Work<E>>,
        stop: CancellationToken,
    ) -> Self {
        let (catch_up, queues, now) = (CatchUp::default(), Queues::new(), Instant::now());
        let (is_unsettled, reported) = (false, BTreeSet::new());
        let (next_look, reads_from) = (now, now);
        Self {
            consumer,
            work,
            stop,
            catch_up,
            queues,
            next_look,
            reads_from,
            is_unsettled,
            reported,
        }
    }

    pub(super) async fn run(mut self) {
        let (consumer, work, stop) = (self.consumer.clone(), self.work.clone(), self.stop.clone());
        let polled = consumer.stream().map(|message| {
            let read = work.read(message);
            Polled { era: consumer.context().era(), read }
        });
        let mut chunks = polled.ready_chunks(PIECE);
        let mut workers = JoinSet::new();
        loop {
            let (wake, may_read) = (self.wake(), self.may_read());
            let mut chunk = Vec::new();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(finished) = workers.join_next() => self.finished(finished),
                () = sleep_until(wake) => {}
                Some(polled) = chunks.next(), if may_read => chunk = polled,
            }
            self.follow().await;
            self.push(chunk);
            if Instant::now() >= self.next_look {
                self.look().await;
            }
            self.pause_and_resume().await;
            self.start(&mut workers).await;
        }
        while let Some(finished) = workers.join_next().await {
            self.finished(finished);
        }
        drop(chunks);
        drop((consumer, work));
        self.close().await;
    }

    /// When there is something to do without a record and without a worker that ends.
    fn wake(&self) -> Instant {
        let now = Instant::now();
        let error = Some(self.reads_from).filter(|reads_from| *reads_from > now);
        let pause = self.queues.next_pause();
        [error, pause].into_iter().flatten().fold(self.next_look, Instant::min)
    }

    /// While every partition is paused nothing is polled, so that after `max.poll.interval.ms`
    /// (5 minutes) the group gives them to a replica that can perhaps reach the store.
    fn may_read(&self) -> bool {
        let is_paused = |partition: &i32| self.queues.is_paused(*partition);
        let are_paused = || {
            let partitions = assigned(&self.consumer);
            !partitions.is_empty() && partitions.iter().all(is_paused)
        };
        Instant::now() >= self.reads_from
            && self.queues.have_room()
            && !(self.queues.any_paused() && are_paused())
    }

    fn push(&mut self, chunk: Vec<Polled<E::Meaning>>) {
        let (era, now) = (self.consumer.context().era(), Instant::now());
        for Polled { read, .. } in chunk.into_iter().filter(|polled| polled.era == era) {
            match read {
                Read::Message(message) => self.queues.push(message, now),
                Read::End(partition) => self.queues.push_end(partition),
                Read::Failed => self.reads_from = now + RETRY_INTERVAL,
            }
        }
    }

    /// Drops what was read in an earlier assignment.
    async fn follow(&mut self) {
        let era = self.consumer.context().era();
        if self.queues.is_in(era) {
            return;
        }
        let paused = self.queues.follow(era);
        self.resume(paused).await;
        self.next_look = Instant::now();
    }

    fn finished(&mut self, finished: std::result::Result<Finished, JoinError>) {
        let finished =
            finished.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        let Finished { partition, era, has_end, is_cancelled } = finished;
        self.queues.finish(partition);
        let is_end = has_end && self.catch_up.end(partition, era);
        if is_end || is_cancelled {
            self.next_look = Instant::now();
        }
    }

    /// Looks where all partitions stand; one that fails is repeated by the next look. Before the first
    /// records of a partition have an effect it must be known whether they are to be read again, or
    /// some would have it twice.
    async fn look(&mut self) {
        let queues = &self.queues;
        let cancel = |partition| queues.cancel(partition);
        let looked = self.catch_up.look(&self.consumer, &self.work, cancel).await;
        for partition in &looked.begun {
            if self.queues.clear(*partition) {
                self.resume(vec![*partition]).await;
            }
        }
        let is_needed = self.queues.ready().into_iter().any(|p| !self.catch_up.is_settled(p));
        let is_missing = looked.missing.is_some();
        self.log(looked.missing, is_needed);
        let interval = if is_needed && is_missing { RETRY_INTERVAL } else { LOOK_INTERVAL };
        self.next_look = Instant::now() + interval;
        self.report_ages();
    }

    fn log(&mut self, missing: Option<Missing>, is_needed: bool) {
        let topic = E::TOPIC.event_type();
        match missing {
            Some(Missing(error)) if is_needed => {
                if !std::mem::replace(&mut self.is_unsettled, true) {
                    tracing::warn!(topic, error, "replay state unknown, records wait and retrying");
                }
            }
            Some(Missing(error)) => tracing::debug!(topic, error, "replay state unknown"),
            None => {
                if std::mem::take(&mut self.is_unsettled) {
                    tracing::info!(topic, "replay state known, records are applied");
                }
            }
        }
    }

    /// Starts a worker for every partition that has records, has none yet and is settled.
    async fn start(&mut self, workers: &mut JoinSet<Finished>) {
        let mut is_started = false;
        for partition in self.queues.ready() {
            if self.catch_up.is_settled(partition)
                && let Some(job) = self.queues.take(partition, &self.stop)
            {
                workers.spawn(self.work.clone().batch(job, self.consumer.clone()));
                is_started = true;
            }
        }
        if is_started {
            // tokio keeps a new task for the thread that made it, which would read on first.
            tokio::task::yield_now().await;
        }
    }

    async fn pause_and_resume(&mut self) {
        let full = self.queues.pause_full(Instant::now());
        for partition in &full {
            tracing::debug!(topic = %E::TOPIC, partition, "queue full, partition paused");
        }
        self.librdkafka(full, |consumer, partitions| consumer.pause(partitions)).await;
        let drained = self.queues.resume_drained();
        self.resume(drained).await;
    }

    async fn resume(&self, partitions: Vec<i32>) {
        self.librdkafka(partitions, |consumer, partitions| consumer.resume(partitions)).await;
    }

    async fn librdkafka(
        &self,
        partitions: Vec<i32>,
        call: impl FnOnce(
            &StreamConsumer<Member>,
            &TopicPartitionList,
        ) -> rdkafka::error::KafkaResult<()>
        + Send
        + 'static,
    ) {
        if partitions.is_empty() {
            return;
        }
        let topic = self.work.topics().name(E::TOPIC).to_owned();
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition(&topic, partition);
        }
        let consumer = self.consumer.clone();
        if let Err(Missing(error)) = blocking(move || call(&consumer, &list)).await {
            tracing::warn!(topic, error, "librdkafka did not pause or resume a partition");
        }
    }

    fn report_ages(&mut self) {
        let (now, partitions) = (Instant::now(), assigned(&self.consumer));
        self.reported.extend(partitions);
        for partition in &self.reported {
            let age = self.queues.age(*partition, now).as_secs_f64();
            let (topic, partition) = (E::TOPIC.event_type(), partition.to_string());
            gauge!(meters::OLDEST_UNAPPLIED, "topic" => topic, "partition" => partition).set(age);
        }
    }

    /// A broker that is unavailable must not hold up the end; what it does not know is read again.
    /// On a thread that the runtime does not wait for, because the commit blocks until it is answered and the
    /// drop until the group knows.
    async fn close(self) {
        let (done, closed) = oneshot::channel();
        std::thread::spawn(move || {
            if let Err(error) = self.consumer.commit_consumer_state(CommitMode::Sync) {
                tracing::debug!(%error, "nothing was committed at the end");
            }
            drop(self);
            // Sending fails only after the timeout.
            let _ = done.send(());
        });
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, closed).await;
    }
}
