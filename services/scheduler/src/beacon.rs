//! The rounds of drand that draws wait for: which ones, and their signatures as far as relays have returned them.
//!
//! A tick must not wait for a relay. It asks for the signature of a round, which a task of the term fetches
//! meanwhile; a later tick gets it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use daegi_beacon::{RelayClient, Signature};
use daegi_runtime::outage::{Backoff, OutageLog};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Delay after a pass in which a round was not fetched; it doubles up to [`MAX_BACKOFF`].
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

/// Failures that are not logged, because relays have a round about a second after its time.
const EXPECTED_FAILURES: u32 = 2;

/// How long a round is kept after the last tick that asked for it. Longer than the longest tick.
const FORGET_AFTER: Duration = Duration::from_secs(150);

/// The rounds that draws wait for.
#[derive(Debug)]
pub struct Beacons {
    relays: RelayClient,
    rounds: Mutex<BTreeMap<u64, Round>>,
    asked: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Round {
    asked_at: Instant,
    signature: Option<Signature>,
}

impl Beacons {
    /// Fetches rounds from these relays.
    #[must_use]
    pub fn new(relays: RelayClient) -> Self {
        Self { relays, rounds: Mutex::default(), asked: Notify::new() }
    }

    /// Returns the verified signature of a published round, if it was fetched. Otherwise it is fetched from now on.
    #[must_use]
    pub fn signature(&self, round: u64) -> Option<Signature> {
        let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        rounds.retain(|_, round| now - round.asked_at < FORGET_AFTER);
        let round = rounds.entry(round).or_insert(Round { asked_at: now, signature: None });
        round.asked_at = now;
        if round.signature.is_none() {
            self.asked.notify_one();
        }
        round.signature
    }

    /// Fetches the rounds that are asked for. Never returns.
    pub async fn run(&self) {
        let (mut outage, mut backoff) =
            (OutageLog::new("beacon relays"), Backoff::new(FIRST_BACKOFF, MAX_BACKOFF));
        let mut failures = 0;
        loop {
            if let Err(error) = self.fetch_missing().await {
                failures += 1;
                if failures > EXPECTED_FAILURES {
                    outage.failed(&error);
                }
                tokio::time::sleep(backoff.next_delay()).await;
                continue;
            }
            outage.recovered();
            backoff.reset();
            failures = 0;
            self.asked.notified().await;
        }
    }

    /// Fetches every round whose signature is missing. Returns the first error.
    async fn fetch_missing(&self) -> Result<(), String> {
        let missing: Vec<u64> = {
            let rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
            let missing = rounds.iter().filter(|(_, round)| round.signature.is_none());
            missing.map(|(number, _)| *number).filter(|_| !self.relays.is_empty()).collect()
        };
        let mut outcome = Ok(());
        for number in missing {
            match self.relays.fetch(number).await {
                Ok(signature) => {
                    tracing::info!(component = "beacon", round = number, "beacon round fetched");
                    let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(round) = rounds.get_mut(&number) {
                        round.signature = Some(signature);
                    }
                }
                Err(error) => outcome = outcome.and(Err(format!("round {number}: {error}"))),
            }
        }
        outcome
    }
}
