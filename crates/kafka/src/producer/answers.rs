//! How the broker's answers are counted: one count for a call, no channel for each record.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::producer::{DeliveryResult, ProducerContext};
use tokio::sync::Notify;

use crate::client::Quiet;

/// What one producer has heard.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Whether a record was refused. What comes after it would be delivered out of order, so the
    /// producer takes nothing more.
    refused: AtomicBool,
}

/// The answers to one call.
#[derive(Debug, Default)]
pub(super) struct Call {
    open: AtomicUsize,
    refusal: OnceLock<KafkaError>,
    over: Notify,
}

impl Answers {
    pub(super) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Acquire)
    }
}

impl ClientContext for Answers {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        Quiet.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        Quiet.error(error, reason);
    }
}

impl ProducerContext for Answers {
    type DeliveryOpaque = Arc<Call>;

    fn delivery(&self, answer: &DeliveryResult<'_>, call: Arc<Call>) {
        if let Err((error, _)) = answer {
            self.refused.store(true, Ordering::Release);
            call.refused(error.clone());
        }
        call.answered();
    }
}

impl Call {
    /// Expects another answer. Only while records are handed over, and nobody waits before all
    /// of them are.
    pub(super) fn one_more(self: &Arc<Self>) -> Arc<Self> {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.clone()
    }

    fn answered(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.over.notify_one();
        }
    }

    fn refused(&self, error: KafkaError) {
        // Only the first reason is told; the others mostly follow from it.
        let _ = self.refusal.set(error);
        self.over.notify_one();
    }

    /// Waits until all records are confirmed or one is refused.
    pub(super) async fn over(&self) -> Result<(), KafkaError> {
        loop {
            if let Some(error) = self.refusal.get() {
                return Err(error.clone());
            }
            if self.open.load(Ordering::Acquire) == 0 {
                return Ok(());
            }
            // A notification between the checks and here is kept for us: there is one waiter.
            self.over.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::error::RDKafkaErrorCode;

    use super::*;

    #[tokio::test]
    async fn a_call_is_over_with_its_last_answer_and_not_before() {
        let call = Arc::<Call>::default();
        let (first, second) = (call.one_more(), call.one_more());
        let mut over = std::pin::pin!(call.over());
        first.answered();
        assert!(futures_util::poll!(&mut over).is_pending());
        second.answered();
        over.await.unwrap();
    }

    #[tokio::test]
    async fn one_refusal_is_enough() {
        let call = Arc::<Call>::default();
        let (first, _second) = (call.one_more(), call.one_more());
        first.refused(KafkaError::MessageProduction(RDKafkaErrorCode::UnknownTopic));
        first.answered();
        assert!(call.over().await.is_err());
    }
}
