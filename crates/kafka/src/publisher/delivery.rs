//! Counts delivery reports: one counter per send instead of one channel per record.

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use rdkafka::ClientContext;
use rdkafka::client::OAuthToken;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::producer::{DeliveryResult, ProducerContext};
use tokio::sync::Notify;

use crate::client::{self, QuietContext};

/// The delivery reports of one producer.
#[derive(Debug, Default)]
pub(super) struct DeliveryContext {
    /// Whether a record was rejected. Records after it would be delivered out of order, so the
    /// producer accepts no more.
    rejected: AtomicBool,
}

/// The delivery reports of one send.
#[derive(Debug, Default)]
pub(super) struct DeliveryTracker {
    open: AtomicUsize,
    error: OnceLock<KafkaError>,
    reported: Notify,
}

impl DeliveryContext {
    pub(super) fn has_rejected(&self) -> bool {
        self.rejected.load(Ordering::Acquire)
    }
}

impl ClientContext for DeliveryContext {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        QuietContext.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        QuietContext.error(error, reason);
    }

    fn generate_oauth_token(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        client::oauth_token(config)
    }
}

impl ProducerContext for DeliveryContext {
    type DeliveryOpaque = Arc<DeliveryTracker>;

    fn delivery(&self, report: &DeliveryResult<'_>, tracker: Arc<DeliveryTracker>) {
        if let Err((error, _)) = report {
            self.rejected.store(true, Ordering::Release);
            tracker.fail(error.clone());
        }
        tracker.report();
    }
}

impl DeliveryTracker {
    /// Expects another report. Called only while records are sent; `wait` is called after all of
    /// them are.
    pub(super) fn expect_one(self: &Arc<Self>) -> Arc<Self> {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.clone()
    }

    fn report(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.reported.notify_one();
        }
    }

    fn fail(&self, error: KafkaError) {
        // Only the first error is kept; the others mostly follow from it.
        let _ = self.error.set(error);
        self.reported.notify_one();
    }

    /// Waits until all records are confirmed or one is rejected.
    pub(super) async fn wait(&self) -> Result<(), KafkaError> {
        loop {
            if let Some(error) = self.error.get() {
                return Err(error.clone());
            }
            if self.open.load(Ordering::Acquire) == 0 {
                return Ok(());
            }
            // `Notify` keeps a notification that arrives between the checks and here, because there
            // is one waiter.
            self.reported.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use rdkafka::error::RDKafkaErrorCode;

    use super::*;

    #[tokio::test]
    async fn a_send_is_confirmed_by_its_last_report_and_not_before() {
        let tracker = Arc::<DeliveryTracker>::default();
        let (first, second) = (tracker.expect_one(), tracker.expect_one());
        let mut confirmed = std::pin::pin!(tracker.wait());
        first.report();
        assert!(futures_util::poll!(&mut confirmed).is_pending());
        second.report();
        confirmed.await.unwrap();
    }

    #[tokio::test]
    async fn one_error_is_enough() {
        let tracker = Arc::<DeliveryTracker>::default();
        let (first, _second) = (tracker.expect_one(), tracker.expect_one());
        first.fail(KafkaError::MessageProduction(RDKafkaErrorCode::UnknownTopic));
        first.report();
        assert!(tracker.wait().await.is_err());
    }
}
