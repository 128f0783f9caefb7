//! The messages of one partition, one after the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use daegi_domain::Topics;
use metrics::counter;
use rdkafka::consumer::{Consumer as _, StreamConsumer};
use tokio_util::sync::CancellationToken;

use super::{Effect, Failure, Incoming, dead_letter};
use crate::client::Quiet;
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

impl<E: Effect> Work<E> {
    pub(super) fn new(effect: E, dead_letters: Publisher, topics: Topics) -> Self {
        Self { effect, dead_letters, topics, troubled: AtomicBool::new(false) }
    }

    pub(super) fn topics(&self) -> &Topics {
        &self.topics
    }

    /// Deals with messages in order and stores each offset; ends early when told to stop.
    pub(super) async fn partition(
        &self,
        messages: Vec<Incoming>,
        consumer: &StreamConsumer<Quiet>,
        stop: &CancellationToken,
    ) {
        for message in messages {
            if !self.insist(&message, stop).await {
                return;
            }
            let topic = self.topics.name(message.topic);
            // Fails only for a partition that was taken away meanwhile: its new owner repeats.
            if let Err(error) = consumer.store_offset(topic, message.partition, message.offset) {
                tracing::debug!(%error, "offset not stored");
            }
        }
    }

    /// Tries until the message is dealt with; false if told to stop before.
    async fn insist(&self, message: &Incoming, stop: &CancellationToken) -> bool {
        let mut pause = FIRST_PAUSE;
        while let Err(missing) = self.deal_with(message).await {
            self.in_trouble(&missing);
            if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return false;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.out_of_trouble();
        true
    }

    /// The one place that decides between waiting and giving up on a message.
    async fn deal_with(&self, message: &Incoming) -> Result<(), String> {
        let topic = message.topic.event_type();
        match self.effect.apply(message).await {
            Ok(()) => {
                counter!(meters::APPLIED, "topic" => topic).increment(1);
                Ok(())
            }
            Err(Failure::Poison(reason)) => {
                self.bury(message, &reason).await?;
                counter!(meters::DEAD_LETTERS, "topic" => topic).increment(1);
                Ok(())
            }
            Err(Failure::Transient(missing)) => {
                counter!(meters::RETRIES, "topic" => topic).increment(1);
                Err(missing)
            }
        }
    }

    /// The reason is in the dead letter and not in the log: it may quote the message.
    async fn bury(&self, message: &Incoming, reason: &str) -> Result<(), String> {
        let record = dead_letter::record(message, reason, &self.topics);
        self.dead_letters.publish(&[record]).await.map_err(|error| error.to_string())?;
        tracing::warn!(
            topic = %message.topic,
            partition = message.partition,
            offset = message.offset,
            "a message that cannot be used went to the dead letters"
        );
        Ok(())
    }

    fn in_trouble(&self, missing: &str) {
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
