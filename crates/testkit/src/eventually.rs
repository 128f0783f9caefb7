//! Waits for a condition by polling it.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A condition: `true` or `Some`.
pub trait Predicate {
    /// What [`eventually`] returns.
    type Value;

    /// Returns the value if the condition holds.
    fn found(self) -> Option<Self::Value>;
}

impl Predicate for bool {
    type Value = ();

    fn found(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Predicate for Option<T> {
    type Value = T;

    fn found(self) -> Option<T> {
        self
    }
}

/// Polls until the condition is `true` or `Some`, and returns its value.
///
/// # Panics
/// With `what`, if the condition does not hold within `deadline`.
pub async fn eventually<F, Fut>(
    deadline: Duration,
    what: &str,
    mut poll: F,
) -> <Fut::Output as Predicate>::Value
where
    F: FnMut() -> Fut,
    Fut: Future<Output: Predicate>,
{
    let end = Instant::now() + deadline;
    loop {
        if let Some(value) = poll().await.found() {
            return value;
        }
        assert!(Instant::now() < end, "not within {deadline:?}: {what}");
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_polls_until_the_condition_holds() {
        let mut polls = 0;
        let found = eventually(Duration::from_secs(5), "the third poll", || {
            polls += 1;
            let found = (polls == 3).then_some("here");
            async move { found }
        });
        assert_eq!(found.await, "here");
    }

    #[tokio::test]
    #[should_panic(expected = "not within 1ms: pigs fly")]
    async fn it_names_the_condition_that_did_not_hold() {
        eventually(Duration::from_millis(1), "pigs fly", async || false).await;
    }
}
