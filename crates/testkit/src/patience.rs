//! Waiting for something that happens soon, without guessing how soon.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// What a look can find: `true`, or a value.
pub trait Finding {
    /// What [`eventually`] returns.
    type Value;

    /// The value, if this is what was waited for.
    fn found(self) -> Option<Self::Value>;
}

impl Finding for bool {
    type Value = ();

    fn found(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Finding for Option<T> {
    type Value = T;

    fn found(self) -> Option<T> {
        self
    }
}

/// Looks again and again until the answer is `true` or `Some`, and returns what was found.
///
/// # Panics
/// With `what`, if it has not happened within `deadline`.
pub async fn eventually<F, Fut>(
    deadline: Duration,
    what: &str,
    mut look: F,
) -> <Fut::Output as Finding>::Value
where
    F: FnMut() -> Fut,
    Fut: Future<Output: Finding>,
{
    let end = Instant::now() + deadline;
    loop {
        if let Some(value) = look().await.found() {
            return value;
        }
        assert!(Instant::now() < end, "not within {deadline:?}: {what}");
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_looks_until_there_is_something() {
        let mut looks = 0;
        let found = eventually(Duration::from_secs(5), "the third look", || {
            looks += 1;
            let found = (looks == 3).then_some("here");
            async move { found }
        });
        assert_eq!(found.await, "here");
    }

    #[tokio::test]
    #[should_panic(expected = "not within 1ms: pigs fly")]
    async fn it_says_what_did_not_happen() {
        eventually(Duration::from_millis(1), "pigs fly", async || false).await;
    }
}
