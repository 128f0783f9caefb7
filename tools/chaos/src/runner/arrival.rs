//! When a user comes.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// When an opening was planned, and when the line opens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpeningTimes {
    pub(super) planned: Instant,
    pub(super) opens: Instant,
}

/// Receives the times of an opening once it is planned.
pub(crate) type OpeningWatch = watch::Receiver<Option<OpeningTimes>>;

/// When a user comes.
#[derive(Debug, Clone)]
pub(crate) enum Arrival {
    At(Instant),
    /// After this part of the time between planning and opening.
    InLobby(OpeningWatch, f64),
    /// So long after the opening.
    AfterOpening(OpeningWatch, Duration),
}

impl Arrival {
    /// Waits until the user comes. Returns `false` if the opening was not planned.
    pub(super) async fn wait(self) -> bool {
        let at = match self {
            Self::At(at) => Some(at),
            Self::InLobby(opening, part) => times(opening).await.map(|times| {
                times.planned + times.opens.duration_since(times.planned).mul_f64(part)
            }),
            Self::AfterOpening(opening, delay) => {
                times(opening).await.map(|times| times.opens + delay)
            }
        };
        match at {
            Some(at) => sleep_until(at).await,
            None => return false,
        }
        true
    }
}

async fn times(mut opening: OpeningWatch) -> Option<OpeningTimes> {
    *opening.wait_for(Option::is_some).await.ok()?
}
