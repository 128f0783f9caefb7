//! Timeouts of store calls, below 1 s, so that clients receive a 503 soon after the store becomes
//! unavailable.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use metrics::counter;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::metrics::STORE_ERRORS;

/// Timeout of one store call.
const STORE_CALL_TIMEOUT: Duration = Duration::from_millis(900);
/// Timeout of all store calls of one request together.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(950);

/// Awaits a store call with a timeout, and counts a failure under the label `call`.
pub(crate) async fn with_store_timeout<T>(
    call: &'static str,
    reply: impl Future<Output = daegi_store::Result<T>>,
) -> Result<T> {
    let outcome = timeout(STORE_CALL_TIMEOUT, reply).await;
    let outcome = outcome.map_or(Err(Error::StoreTimeout), |reply| reply.map_err(Error::Store));
    outcome.inspect_err(|_| counter!(STORE_ERRORS, "call" => call).increment(1))
}

/// Awaits the store calls of one request, some of them shared with other requests, with a timeout.
/// Most requests need no call: `work` completes when it is first polled, before a timer is created.
pub(crate) async fn with_request_timeout<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut work = pin!(work);
    match poll!(work.as_mut()) {
        Poll::Ready(done) => done,
        Poll::Pending => timeout(REQUEST_TIMEOUT, work).await.unwrap_or(Err(Error::StoreTimeout)),
    }
}
