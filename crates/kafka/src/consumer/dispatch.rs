//! The loop that polls a topic and hands the records of each partition to its worker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ::metrics::gauge;
use futures_util::StreamExt;
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{CommitMode, Consumer as _};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::fetched::{Fetched, Polled};
use super::group_consumer::GroupConsumer;
use super::processor::{Finished, Processor};
use super::queues::Queues;
use super::replay::{Replay, assigned, blocking};
use super::{MessageHandler, RetryLater};
use crate::metrics;

/// Records read before the task yields to others on the same thread.
const READS_PER_YIELD: usize = 1_024;

/// How often the replay progress is checked.
const REPLAY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Delay after librdkafka reported an error, and between failing replay checks while a partition
/// waits for one.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Timeout of the last commit during shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Polls one topic until it is stopped.
pub(super) struct Dispatcher<E: MessageHandler> {
    consumer: Arc<GroupConsumer>,
    processor: Arc<Processor<E>>,
    stop: CancellationToken,
    replay: Replay,
    queues: Queues<E::Command>,
    next_check: Instant,
    /// The topic is not polled before this instant, because librdkafka reported an error.
    reads_from: Instant,
    /// Whether replay checks fail while a partition waits for them, so that it is logged once.
    is_replay_unknown: bool,
    /// Partitions whose age was reported, so that revoked ones are reported as 0.
    reported: BTreeSet<i32>,
}

impl<E: MessageHandler> Dispatcher<E> {
    pub(super) fn new(
        consumer: Arc<GroupConsumer>,
        processor: Arc<Processor<E>>,
        stop: CancellationToken,
    ) -> Self {
        let (replay, queues, now) = (Replay::default(), Queues::new(), Instant::now());
        let (is_replay_unknown, reported) = (false, BTreeSet::new());
        let (next_check, reads_from) = (now, now);
        Self {
            consumer,
            processor,
            stop,
            replay,
            queues,
            next_check,
            reads_from,
            is_replay_unknown,
            reported,
        }
    }

    pub(super) async fn run(mut self) {
        let (consumer, processor, stop) =
            (self.consumer.clone(), self.processor.clone(), self.stop.clone());
        let polled = consumer.stream().map(|message| {
            let fetched = processor.decode(message);
            Polled { generation: consumer.context().generation(), fetched }
        });
        let mut chunks = polled.ready_chunks(READS_PER_YIELD);
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
            self.follow_generation().await;
            self.push(chunk);
            if Instant::now() >= self.next_check {
                self.check_replay().await;
            }
            self.pause_and_resume().await;
            self.start(&mut workers).await;
        }
        while let Some(finished) = workers.join_next().await {
            self.finished(finished);
        }
        drop(chunks);
        drop((consumer, processor));
        self.commit_and_close().await;
    }

    /// Returns the next instant at which a timer is due.
    fn wake(&self) -> Instant {
        let now = Instant::now();
        let error = Some(self.reads_from).filter(|reads_from| *reads_from > now);
        let pause = self.queues.next_pause();
        [error, pause].into_iter().flatten().fold(self.next_check, Instant::min)
    }

    /// Returns whether the topic may be polled. It is not polled while every partition is paused,
    /// so that after `max.poll.interval.ms` (5 minutes) the group assigns them to a replica that
    /// may be able to reach the store.
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

    fn push(&mut self, chunk: Vec<Polled<E::Command>>) {
        let (generation, now) = (self.consumer.context().generation(), Instant::now());
        for Polled { fetched, .. } in
            chunk.into_iter().filter(|polled| polled.generation == generation)
        {
            match fetched {
                Fetched::Message(message) => self.queues.push(message, now),
                Fetched::EndOfPartition(partition) => self.queues.push_end(partition),
                Fetched::Error => self.reads_from = now + RETRY_INTERVAL,
            }
        }
    }

    /// Drops records of an earlier assignment.
    async fn follow_generation(&mut self) {
        let generation = self.consumer.context().generation();
        if self.queues.is_in(generation) {
            return;
        }
        let paused = self.queues.start_generation(generation);
        self.resume(paused).await;
        self.next_check = Instant::now();
    }

    fn finished(&mut self, finished: std::result::Result<Finished, JoinError>) {
        let finished =
            finished.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        let Finished { partition, generation, has_end, is_cancelled } = finished;
        self.queues.finish(partition);
        let is_end = has_end && self.replay.reached_end(partition, generation);
        if is_end || is_cancelled {
            self.next_check = Instant::now();
        }
    }

    /// Checks the replay progress of all partitions; the next check repeats one that failed. The
    /// progress must be known before the first records of a partition are applied, otherwise some
    /// would be applied twice.
    async fn check_replay(&mut self) {
        let queues = &self.queues;
        let cancel = |partition| queues.cancel(partition);
        let checked = self.replay.check(&self.consumer, &self.processor, cancel).await;
        for partition in &checked.rewound {
            if self.queues.clear(*partition) {
                self.resume(vec![*partition]).await;
            }
        }
        let is_needed = self.queues.ready().into_iter().any(|p| !self.replay.is_known(p));
        let has_error = checked.error.is_some();
        self.log(checked.error, is_needed);
        let interval = if is_needed && has_error { RETRY_INTERVAL } else { REPLAY_CHECK_INTERVAL };
        self.next_check = Instant::now() + interval;
        self.report_ages();
    }

    fn log(&mut self, error: Option<RetryLater>, is_needed: bool) {
        let topic = E::TOPIC.event_type();
        match error {
            Some(RetryLater(error)) if is_needed => {
                if !std::mem::replace(&mut self.is_replay_unknown, true) {
                    tracing::warn!(
                        topic,
                        error,
                        "replay state unknown, records held, checking again"
                    );
                }
            }
            Some(RetryLater(error)) => tracing::debug!(topic, error, "replay state unknown"),
            None => {
                if std::mem::take(&mut self.is_replay_unknown) {
                    tracing::info!(topic, "replay state known, applying records");
                }
            }
        }
    }

    /// Starts a worker for every partition that has records, no worker and a known start offset.
    async fn start(&mut self, workers: &mut JoinSet<Finished>) {
        let mut is_started = false;
        for partition in self.queues.ready() {
            if self.replay.is_known(partition)
                && let Some(job) = self.queues.take(partition, &self.stop)
            {
                workers.spawn(self.processor.clone().batch(job, self.consumer.clone()));
                is_started = true;
            }
        }
        if is_started {
            // tokio queues a new task on the spawning thread, which would otherwise poll the topic
            // before it runs the worker.
            tokio::task::yield_now().await;
        }
    }

    async fn pause_and_resume(&mut self) {
        let full = self.queues.pause_full(Instant::now());
        for partition in &full {
            tracing::debug!(topic = %E::TOPIC, partition, "queue full, partition paused");
        }
        self.with_partitions(full, |consumer, partitions| consumer.pause(partitions)).await;
        let drained = self.queues.resume_drained();
        self.resume(drained).await;
    }

    async fn resume(&self, partitions: Vec<i32>) {
        self.with_partitions(partitions, |consumer, partitions| consumer.resume(partitions)).await;
    }

    async fn with_partitions(
        &self,
        partitions: Vec<i32>,
        call: impl FnOnce(&GroupConsumer, &TopicPartitionList) -> rdkafka::error::KafkaResult<()>
        + Send
        + 'static,
    ) {
        if partitions.is_empty() {
            return;
        }
        let topic = self.processor.topics().name(E::TOPIC).to_owned();
        let mut list = TopicPartitionList::new();
        for partition in partitions {
            list.add_partition(&topic, partition);
        }
        let consumer = self.consumer.clone();
        if let Err(RetryLater(error)) = blocking(move || call(&consumer, &list)).await {
            tracing::warn!(topic, error, "librdkafka did not pause or resume a partition");
        }
    }

    fn report_ages(&mut self) {
        let (now, partitions) = (Instant::now(), assigned(&self.consumer));
        self.reported.extend(partitions);
        for partition in &self.reported {
            let age = self.queues.age(*partition, now).as_secs_f64();
            let (topic, partition) = (E::TOPIC.event_type(), partition.to_string());
            gauge!(metrics::OLDEST_UNAPPLIED, "topic" => topic, "partition" => partition).set(age);
        }
    }

    /// Commits stored offsets and leaves the group. It runs on a thread that the runtime does not
    /// wait for, because both block until the broker replies, and an unavailable broker must not
    /// delay the shutdown. Records whose offset was not committed are read again.
    async fn commit_and_close(self) {
        let (done, closed) = oneshot::channel();
        std::thread::spawn(move || {
            let Self { consumer, processor, .. } = self;
            if let Err(error) = consumer.commit_consumer_state(CommitMode::Sync) {
                tracing::debug!(%error, "offsets not committed at shutdown");
            }
            if let Some(consumer) = Arc::into_inner(consumer) {
                consumer.close();
            }
            drop(processor);
            // Sending fails only after `CLOSE_TIMEOUT`, when the receiver is dropped.
            let _ = done.send(());
        });
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, closed).await;
    }
}
