//! How long anybody waits for the store. A person is told within a second that it is away.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use metrics::counter;
use tokio::time::timeout;

use crate::error::{Error, Result};
use crate::meters::STORE_ERRORS;

/// The longest one call of the store may take.
const CALL: Duration = Duration::from_millis(900);
/// The longest everything a request needs from the store may take together.
const REQUEST: Duration = Duration::from_millis(950);

/// Calls the store, but not for ever.
pub(crate) async fn in_time<T>(
    call: &'static str,
    answer: impl Future<Output = daegi_store::Result<T>>,
) -> Result<T> {
    let outcome = timeout(CALL, answer).await;
    let outcome = outcome.map_or(Err(Error::Slow), |answer| answer.map_err(Error::Store));
    outcome.inspect_err(|_| counter!(STORE_ERRORS, "call" => call).increment(1))
}

/// Does what a request needs, which may be several calls, some of them other people's. Most polls
/// need none and are done at once, before there is anything to time.
pub(crate) async fn in_a_second<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut work = pin!(work);
    match poll!(work.as_mut()) {
        Poll::Ready(done) => done,
        Poll::Pending => timeout(REQUEST, work).await.unwrap_or(Err(Error::Slow)),
    }
}
