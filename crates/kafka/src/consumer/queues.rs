//! The partitions of one assignment. Each has a queue of records and at most one worker that
//! applies a batch of them, so that a partition keeps its order and waits for no other partition.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fetched::{Batch, Message};

/// How long a full queue may stop all partitions from being read before its partition is paused.
/// Pausing makes librdkafka discard what it has prefetched, so a queue that drains within this time
/// is not paused.
const FULL_TIMEOUT: Duration = Duration::from_secs(1);

/// When the oldest record was read that a worker has not applied yet.
#[derive(Debug, Default)]
pub(super) struct Unapplied(Mutex<Option<Instant>>);

/// The queues of all partitions.
pub(super) struct Queues<M> {
    generation: u64,
    partitions: BTreeMap<i32, Queue<M>>,
}

struct Queue<M> {
    waiting: Batch<M>,
    worker: Option<Worker>,
    /// Since when it is full.
    full_since: Option<Instant>,
    /// Whether fetching this partition is paused.
    is_paused: bool,
}

#[derive(Debug, Clone)]
struct Worker {
    cancel: CancellationToken,
    unapplied: Arc<Unapplied>,
}

/// The work of one worker.
pub(super) struct Job<M> {
    pub(super) partition: i32,
    pub(super) generation: u64,
    pub(super) batch: Batch<M>,
    /// Cancelled when this worker no longer owns the records: it finishes the current attempt and
    /// starts no other.
    pub(super) cancel: CancellationToken,
    pub(super) unapplied: Arc<Unapplied>,
}

impl Unapplied {
    pub(super) fn set(&self, oldest: Option<Instant>) {
        *self.lock() = oldest;
    }

    fn oldest(&self) -> Option<Instant> {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> Default for Queue<M> {
    fn default() -> Self {
        Self { waiting: Batch::default(), worker: None, full_since: None, is_paused: false }
    }
}

impl<M> Queues<M> {
    pub(super) fn new() -> Self {
        Self { generation: 0, partitions: BTreeMap::new() }
    }

    pub(super) fn is_in(&self, generation: u64) -> bool {
        self.generation == generation
    }

    /// Starts another assignment and drops queued records; the owner of their partition reads them
    /// again. Returns the paused partitions, which the caller must resume, because librdkafka keeps
    /// a pause over a rebalance.
    pub(super) fn start_generation(&mut self, generation: u64) -> Vec<i32> {
        self.generation = generation;
        let partitions: Vec<_> = self.partitions.keys().copied().collect();
        let paused = partitions.into_iter().filter(|partition| self.clear(*partition)).collect();
        self.partitions.retain(|_, queue| queue.worker.is_some());
        paused
    }

    /// Drops the queued records of a partition and cancels its worker. Returns whether the
    /// partition is paused; the caller then resumes it.
    pub(super) fn clear(&mut self, partition: i32) -> bool {
        let Some(queue) = self.partitions.get_mut(&partition) else { return false };
        queue.waiting = Batch::default();
        queue.full_since = None;
        if let Some(worker) = &queue.worker {
            worker.cancel.cancel();
        }
        std::mem::take(&mut queue.is_paused)
    }

    /// Cancels the worker of a partition. Returns `false` if none runs.
    pub(super) fn cancel(&self, partition: i32) -> bool {
        let queue = self.partitions.get(&partition);
        let worker = queue.and_then(|queue| queue.worker.as_ref());
        worker.inspect(|worker| worker.cancel.cancel()).is_some()
    }

    pub(super) fn push(&mut self, message: Message<M>, now: Instant) {
        let queue = self.partitions.entry(message.partition).or_default();
        queue.waiting.push(message, now);
        if queue.waiting.is_full() {
            queue.full_since.get_or_insert(now);
        }
    }

    pub(super) fn push_end(&mut self, partition: i32) {
        self.partitions.entry(partition).or_default().waiting.has_end = true;
    }

    /// Returns whether the topic may be polled: a full queue that is not paused would grow.
    pub(super) fn have_room(&self) -> bool {
        self.partitions.values().all(|queue| queue.full_since.is_none() || queue.is_paused)
    }

    pub(super) fn any_paused(&self) -> bool {
        self.partitions.values().any(|queue| queue.is_paused)
    }

    pub(super) fn is_paused(&self, partition: i32) -> bool {
        self.partitions.get(&partition).is_some_and(|queue| queue.is_paused)
    }

    /// Returns when the next full queue is to be paused.
    pub(super) fn next_pause(&self) -> Option<Instant> {
        let queues = self.partitions.values().filter(|queue| !queue.is_paused);
        queues.filter_map(|queue| queue.full_since).min().map(|since| since + FULL_TIMEOUT)
    }

    /// Marks queues that have been full for too long as paused, and returns them.
    pub(super) fn pause_full(&mut self, now: Instant) -> Vec<i32> {
        self.mark(true, |queue| queue.full_since.is_some_and(|since| now >= since + FULL_TIMEOUT))
    }

    /// Marks paused queues with room as resumed, and returns them.
    pub(super) fn resume_drained(&mut self) -> Vec<i32> {
        self.mark(false, |queue| queue.full_since.is_none())
    }

    fn mark(&mut self, paused: bool, is_due: impl Fn(&Queue<M>) -> bool) -> Vec<i32> {
        let mut marked = Vec::new();
        for (partition, queue) in &mut self.partitions {
            if queue.is_paused != paused && is_due(queue) {
                queue.is_paused = paused;
                marked.push(*partition);
            }
        }
        marked
    }

    /// Returns the partitions that have records and no worker.
    pub(super) fn ready(&self) -> Vec<i32> {
        let ready = self.partitions.iter().filter(|(_, queue)| queue.is_ready());
        ready.map(|(partition, _)| *partition).collect()
    }

    /// Moves all queued records of a partition into a job. Returns `None` if there are none or a
    /// worker still runs.
    pub(super) fn take(&mut self, partition: i32, stop: &CancellationToken) -> Option<Job<M>> {
        let queue = self.partitions.get_mut(&partition).filter(|queue| queue.is_ready())?;
        let batch = std::mem::take(&mut queue.waiting);
        queue.full_since = None;
        let worker = Worker { cancel: stop.child_token(), unapplied: Arc::default() };
        worker.unapplied.set(batch.oldest());
        let Worker { cancel, unapplied } = worker.clone();
        queue.worker = Some(worker);
        Some(Job { partition, generation: self.generation, batch, cancel, unapplied })
    }

    /// Marks that the worker of a partition has ended.
    pub(super) fn finish(&mut self, partition: i32) {
        if let Some(queue) = self.partitions.get_mut(&partition) {
            queue.worker = None;
        }
    }

    /// Returns the age of the oldest unapplied record of a partition; 0 if there is none.
    pub(super) fn age(&self, partition: i32, now: Instant) -> Duration {
        let Some(queue) = self.partitions.get(&partition) else { return Duration::ZERO };
        let under_way = queue.worker.as_ref().and_then(|worker| worker.unapplied.oldest());
        let oldest = under_way.or_else(|| queue.waiting.oldest());
        oldest.map_or(Duration::ZERO, |seen| now.duration_since(seen))
    }
}

impl<M> Queue<M> {
    fn is_ready(&self) -> bool {
        self.worker.is_none() && !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fetched::tests::message;
    use super::*;

    fn filled(partition: i32, records: i64, now: Instant) -> Queues<i64> {
        let mut queues = Queues::new();
        (0..records).for_each(|n| queues.push(message(partition, n * 10), now));
        queues
    }

    #[test]
    fn a_partition_has_one_worker_and_others_do_not_wait_for_it() {
        let (now, stop) = (Instant::now(), CancellationToken::new());
        let mut queues = filled(0, 2, now);
        assert_eq!(queues.take(0, &stop).unwrap().batch.oldest(), Some(now));
        queues.push(message(0, 20), now);
        queues.push(message(1, 0), now);
        assert_eq!(queues.ready(), [1]);
        assert!(queues.take(0, &stop).is_none());
        assert!(queues.take(1, &stop).is_some());
        queues.finish(0);
        assert_eq!(queues.ready(), [0]);
    }

    #[test]
    fn a_full_queue_stops_the_reading_until_it_is_paused() {
        let (now, stop) = (Instant::now(), CancellationToken::new());
        let mut queues = filled(0, 1, now);
        let _held = queues.take(0, &stop).unwrap();
        (0..4_096).for_each(|n| queues.push(message(0, n * 10), now));
        assert!(!queues.have_room());
        assert_eq!(queues.next_pause(), Some(now + FULL_TIMEOUT));
        assert!(queues.pause_full(now).is_empty());
        assert_eq!(queues.pause_full(now + FULL_TIMEOUT), [0]);
        assert!(queues.have_room() && queues.is_paused(0) && queues.next_pause().is_none());
        assert!(queues.resume_drained().is_empty());
        queues.finish(0);
        assert!(queues.take(0, &stop).is_some());
        assert_eq!(queues.resume_drained(), [0]);
    }

    #[test]
    fn another_assignment_drops_queues_cancels_workers_and_resumes() {
        let (now, stop) = (Instant::now(), CancellationToken::new());
        let mut queues = filled(0, 5_000, now);
        let job = queues.take(0, &stop).unwrap();
        (0..5_000).for_each(|n| queues.push(message(0, n * 10), now));
        assert_eq!(queues.pause_full(now + FULL_TIMEOUT), [0]);
        assert_eq!(queues.start_generation(1), [0]);
        assert!(job.cancel.is_cancelled() && !stop.is_cancelled());
        assert!(queues.have_room() && queues.ready().is_empty());
        // The next one waits for the one that was cancelled.
        queues.push(message(0, 0), now);
        assert!(queues.take(0, &stop).is_none());
        queues.finish(0);
        assert_eq!(queues.take(0, &stop).unwrap().generation, 1);
    }

    #[test]
    fn the_age_is_that_of_the_oldest_record_without_an_effect() {
        let (now, stop) = (Instant::now(), CancellationToken::new());
        let second = Duration::from_secs(1);
        let mut queues = filled(0, 1, now);
        assert_eq!(queues.age(0, now + second), second);
        let job = queues.take(0, &stop).unwrap();
        queues.push(message(0, 10), now + second);
        assert_eq!(queues.age(0, now + 3 * second), 3 * second);
        job.unapplied.set(None);
        assert_eq!(queues.age(0, now + 3 * second), 2 * second);
        assert_eq!(queues.age(1, now + 3 * second), Duration::ZERO);
    }
}
