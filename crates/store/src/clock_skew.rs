//! How far this process's clock is from the clock of the store's server.
//!
//! Every time in the store comes from the clock of the process that writes it. Two processes whose
//! clocks differ by seconds disagree about who was seen and when an entry expires. The server's
//! clock is the one reference they share.

use std::time::Duration;

use daegi_domain::Millis;
use metrics::gauge;

use crate::{AdminStore, Result, SharedStore};

/// Seconds by which this process's clock is ahead of Redis; negative if it is behind. Absent with
/// the memory store.
pub const CLOCK_SKEW: &str = "daegi_store_clock_skew_seconds";

/// Interval between two measurements.
const INTERVAL: Duration = Duration::from_secs(15);

/// Longest round trip of a measurement that counts, in milliseconds. The server reads its clock at
/// an unknown moment of the round trip, so half of it is the error of the measurement.
const MAX_ROUND_TRIP: Millis = 500;

/// Measures every 15 s and sets [`CLOCK_SKEW`]; never returns.
pub async fn watch(store: SharedStore, now: impl Fn() -> Millis + Send) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match measure(&*store, &now).await {
            Ok(Some(skew_ms)) => gauge!(CLOCK_SKEW).set(skew_ms as f64 / 1000.0),
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "clock skew not measured"),
        }
    }
}

/// Returns by how many milliseconds `now` is ahead of the clock of the store's server, which counts
/// as read in the middle of the round trip. Returns `None` if the store has no server, if the round
/// trip took longer than 500 ms, or if `now` went back during it.
///
/// # Errors
/// If the store does not reply.
pub async fn measure(store: &dyn AdminStore, now: impl Fn() -> Millis) -> Result<Option<i64>> {
    let sent = now();
    let Some(server) = store.server_time().await? else { return Ok(None) };
    Ok(skew(sent, server, now()))
}

fn skew(sent: Millis, server: Millis, received: Millis) -> Option<i64> {
    // A clock that was set back during the call gives no valid round trip.
    let round_trip = received.checked_sub(sent).filter(|took| *took <= MAX_ROUND_TRIP)?;
    let local = i64::try_from(sent + round_trip / 2).ok()?;
    Some(local - i64::try_from(server).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_round_trip_is_subtracted() {
        assert_eq!(skew(1_000, 1_050, 1_100), Some(0));
        assert_eq!(skew(4_000, 1_000, 4_000), Some(3_000));
        assert_eq!(skew(1_000, 4_000, 1_020), Some(-2_990));
    }

    #[test]
    fn a_slow_reply_and_a_clock_set_back_measure_nothing() {
        assert_eq!(skew(1_000, 1_000, 1_501), None);
        assert_eq!(skew(1_000, 1_000, 999), None);
    }
}
