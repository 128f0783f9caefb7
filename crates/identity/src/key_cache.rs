//! Caches the keys of an issuer. One task fetches them: at the start, when they are old, and when an assertion names a
//! key that is not among them, because the issuer may have rotated its keys.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use daegi_runtime::Shutdown;
use daegi_runtime::config::JwksLocation;
use daegi_runtime::outage::{Backoff, OutageLog};
use metrics::{Unit, counter, describe_counter};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::IdentityError;
use crate::keys::{KeySet, PublicKey};
use crate::source::Source;

/// The component in logs.
const COMPONENT: &str = "identity keys";

/// Fetches of the keys of identities, by `result`.
const KEY_FETCHES: &str = "daegi_api_identity_key_fetches_total";

/// Maximum unknown key ids that are remembered.
const MAX_UNKNOWN: usize = 1_024;

/// When the keys are fetched.
#[derive(Debug, Clone, Copy)]
pub struct RefreshTimes {
    /// Age at which they are fetched again.
    pub max_age: Duration,
    /// Minimum time between two fetches, whatever key ids clients send.
    pub min_interval: Duration,
    /// How long an unknown key id causes no further fetch.
    pub unknown_for: Duration,
    /// How long a join waits for a fetch that an unknown key id caused.
    pub wait: Duration,
}

/// The cached keys.
#[derive(Debug)]
pub(crate) struct KeyCache {
    shared: Arc<Shared>,
    times: RefreshTimes,
}

#[derive(Debug)]
struct Shared {
    source: Source,
    known: ArcSwap<KeySet>,
    /// Key ids that were not among the keys, and since when.
    unknown: Mutex<HashMap<Option<String>, Instant>>,
    /// Wakes the task.
    wanted: Notify,
    latest: watch::Sender<Latest>,
}

/// The latest fetch.
#[derive(Debug, Clone, Copy, Default)]
struct Latest {
    /// When it ended; `None` before the first one.
    ended_at: Option<Instant>,
    has_failed: bool,
}

impl Default for RefreshTimes {
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(300),
            min_interval: Duration::from_secs(10),
            unknown_for: Duration::from_secs(60),
            wait: Duration::from_secs(4),
        }
    }
}

impl KeyCache {
    /// Starts the task that fetches the keys.
    pub(crate) fn start(location: &JwksLocation, times: RefreshTimes, shutdown: &Shutdown) -> Self {
        describe_counter!(KEY_FETCHES, Unit::Count, "Fetches of the keys of identities, by result");
        for result in ["ok", "failed"] {
            counter!(KEY_FETCHES, "result" => result).increment(0);
        }
        let shared = Arc::new(Shared {
            source: Source::new(location),
            known: ArcSwap::default(),
            unknown: Mutex::default(),
            wanted: Notify::new(),
            latest: watch::Sender::default(),
        });
        let refresh = Arc::clone(&shared).run(times, shutdown.token().clone());
        shutdown.spawn(COMPONENT, refresh);
        Self { shared, times }
    }

    /// Returns the key with this id. Waits for a fetch if the id is unknown and a fetch is due.
    pub(crate) async fn find(&self, kid: Option<&str>) -> Result<Arc<PublicKey>, IdentityError> {
        let shared = &self.shared;
        if let Some(key) = shared.known.load().find(kid) {
            return Ok(key);
        }
        if !shared.is_unknown(kid, self.times.unknown_for) {
            let mut latest = shared.latest.subscribe();
            let ended_at = latest.borrow_and_update().ended_at;
            // Even if no fetch is due yet, the task fetches as soon as one is.
            shared.wanted.notify_one();
            if ended_at.is_none_or(|at| at.elapsed() >= self.times.min_interval) {
                // The outcome is read below, also if the fetch takes too long.
                let _ = timeout(self.times.wait, latest.changed()).await;
            }
            if let Some(key) = shared.known.load().find(kid) {
                return Ok(key);
            }
        }
        let latest = *shared.latest.borrow();
        if latest.has_failed || latest.ended_at.is_none() {
            // The issuer may have published the key meanwhile.
            return Err(IdentityError::KeysUnavailable);
        }
        if latest.ended_at.is_some_and(|at| at.elapsed() < self.times.min_interval) {
            shared.remember_unknown(kid, self.times.unknown_for);
        }
        Err(if kid.is_some() { IdentityError::UnknownKey } else { IdentityError::NoKeyId })
    }
}

impl Shared {
    async fn run(self: Arc<Self>, times: RefreshTimes, stop: CancellationToken) {
        let mut outage = OutageLog::new(COMPONENT);
        let mut backoff = Backoff::new(times.min_interval, times.max_age);
        let refresh = async {
            loop {
                let delay = if self.fetch(&mut outage).await {
                    backoff.reset();
                    times.max_age
                } else {
                    backoff.next_delay()
                };
                let delay = delay.saturating_sub(times.min_interval);
                sleep(times.min_interval).await;
                tokio::select! {
                    () = sleep(delay) => {}
                    () = self.wanted.notified() => {}
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = refresh => {}
        }
    }

    /// Fetches the keys once. On failure the known ones stay. Returns whether it succeeded.
    async fn fetch(&self, outage: &mut OutageLog) -> bool {
        let has_failed = match self.source.fetch().await {
            Ok(keys) => {
                outage.recovered();
                tracing::debug!(component = COMPONENT, kids = ?keys.ids().collect::<Vec<_>>(), "keys fetched");
                self.known.store(Arc::new(keys));
                counter!(KEY_FETCHES, "result" => "ok").increment(1);
                false
            }
            Err(error) => {
                outage.failed(&format!("fetching the keys of DAEGI_IDENTITY_JWKS failed, known keys stay valid: {error}"));
                counter!(KEY_FETCHES, "result" => "failed").increment(1);
                true
            }
        };
        self.latest.send_replace(Latest { ended_at: Some(Instant::now()), has_failed });
        !has_failed
    }

    fn is_unknown(&self, kid: Option<&str>, unknown_for: Duration) -> bool {
        let unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        unknown.get(&kid.map(str::to_owned)).is_some_and(|since| since.elapsed() < unknown_for)
    }

    /// Remembers an unknown key id, unless the bound is reached by other ids: the minimum interval holds without it.
    fn remember_unknown(&self, kid: Option<&str>, unknown_for: Duration) {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if unknown.len() >= MAX_UNKNOWN {
            unknown.retain(|_, since| since.elapsed() < unknown_for);
        }
        if unknown.len() < MAX_UNKNOWN {
            unknown.insert(kid.map(str::to_owned), Instant::now());
        }
    }
}
