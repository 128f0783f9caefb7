//! The messages of one partition, one after the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use daegi_domain::Topics;
use metrics::counter;
use rdkafka::consumer::{CommitMode, Consumer as _, StreamConsumer};
use tokio_util::sync::CancellationToken;

use super::{Effect, Failure, Halt, Incoming, Member, dead_letter};
use crate::{Publisher, meters};

/// The first pause before an effect is tried again; doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// What is done with every message.
pub(super) struct Work<E> {
    effect: E,
    dead_letters: Publisher,
    topics: Topics,
    /// Whether something is missing, so that it is said once for all partitions.
    troubled: AtomicBool,
}

/// What became of some messages.
struct Dealt {
    /// How many of them need no more attention.
    done: usize,
    /// The last of these went to the dead letters.
    buried: bool,
    /// What the next one waits for.
    missing: Option<String>,
}

impl<E: Effect> Work<E> {
    pub(super) fn new(effect: E, dead_letters: Publisher, topics: Topics) -> Self {
        Self { effect, dead_letters, topics, troubled: AtomicBool::new(false) }
    }

    pub(super) fn effect(&self) -> &E {
        &self.effect
    }

    pub(super) fn topics(&self) -> &Topics {
        &self.topics
    }

    /// Deals with messages in order and stores offsets; ends early when told to stop.
    pub(super) async fn partition(
        &self,
        mut messages: &[Incoming<'_>],
        consumer: &StreamConsumer<Member>,
        stop: &CancellationToken,
    ) {
        let mut pause = FIRST_PAUSE;
        while !messages.is_empty() {
            let Dealt { done, buried, missing } = self.deal_with(messages).await;
            if let Some(last) = messages[..done].last() {
                self.store_offset(last, consumer);
                pause = FIRST_PAUSE;
            }
            if buried {
                commit(consumer);
            }
            messages = &messages[done..];
            let Some(missing) = missing else { continue };
            self.in_trouble(&missing);
            if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.out_of_trouble();
    }

    /// The one place that decides between waiting and giving up on a message.
    async fn deal_with(&self, messages: &[Incoming<'_>]) -> Dealt {
        let topic = E::TOPIC.event_type();
        let halted = self.effect.apply(messages).await;
        let done = halted.as_ref().map_or_else(|halt| halt.done, |()| messages.len());
        counter!(meters::APPLIED, "topic" => topic).increment(done as u64);
        match halted {
            Ok(()) => Dealt { done, buried: false, missing: None },
            Err(Halt { why: Failure::Transient(missing), .. }) => {
                counter!(meters::RETRIES, "topic" => topic).increment(1);
                Dealt { done, buried: false, missing: Some(missing) }
            }
            Err(Halt { why: Failure::Poison(reason), .. }) => {
                match self.bury(&messages[done], &reason).await {
                    Ok(()) => Dealt { done: done + 1, buried: true, missing: None },
                    Err(missing) => Dealt { done, buried: false, missing: Some(missing) },
                }
            }
        }
    }

    /// The reason is in the dead letter and not in the log: it may quote the message.
    async fn bury(&self, message: &Incoming<'_>, reason: &str) -> Result<(), String> {
        let record = dead_letter::record(message, reason, &self.topics);
        self.dead_letters.publish(&[record]).await.map_err(|error| error.to_string())?;
        counter!(meters::DEAD_LETTERS, "topic" => E::TOPIC.event_type()).increment(1);
        tracing::warn!(
            topic = %E::TOPIC,
            partition = message.partition,
            offset = message.offset,
            "a message that cannot be used went to the dead letters"
        );
        Ok(())
    }

    /// Fails only for a partition that was taken away meanwhile: its new owner repeats.
    fn store_offset(&self, message: &Incoming<'_>, consumer: &StreamConsumer<Member>) {
        let topic = self.topics.name(E::TOPIC);
        if let Err(error) = consumer.store_offset(topic, message.partition, message.offset) {
            tracing::debug!(%error, "offset not stored");
        }
    }

    pub(super) fn in_trouble(&self, missing: &str) {
        if !self.troubled.swap(true, Ordering::SeqCst) {
            tracing::warn!(part = "consumer", error = missing, "in trouble, trying again");
        }
    }

    fn out_of_trouble(&self) {
        if self.troubled.swap(false, Ordering::SeqCst) {
            tracing::info!(part = "consumer", "out of trouble");
        }
    }
}

/// A dead letter cannot be taken back, so its offset does not wait for the next commit: what a
/// replica repeats that is thrown out of its group seldom has one in it.
fn commit(consumer: &StreamConsumer<Member>) {
    if let Err(error) = consumer.commit_consumer_state(CommitMode::Async) {
        tracing::debug!(%error, "offsets not committed");
    }
}
