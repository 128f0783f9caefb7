//! Fetches and caches daegi's public keys (JWKS), so that checking a pass needs no call. The keys
//! are fetched again when they are older than `key_ttl`, or when a pass names an unknown key id,
//! because daegi may have rotated its keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use daegi_domain::Millis;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use tokio::sync::{Mutex, MutexGuard};

use crate::guard::{Clock, GuardConfig};

/// Cached keys of one daegi.
pub(crate) struct JwksClient {
    http: reqwest::Client,
    url: String,
    key_ttl: Duration,
    min_fetch_interval: Duration,
    timeout: Duration,
    clock: Clock,
    known: ArcSwap<KeySet>,
    /// Time of the last fetch. Locked during a fetch, so that concurrent requests share one.
    last_fetch: Mutex<Option<Millis>>,
}

#[derive(Default)]
struct KeySet {
    keys: HashMap<String, DecodingKey>,
    fetched_at: Option<Millis>,
}

/// No fetch has succeeded yet, so signatures cannot be verified.
#[derive(Debug)]
pub(crate) struct KeysUnavailable;

#[derive(Deserialize)]
struct Published {
    keys: Vec<PublishedKey>,
}

/// A key of the set. The set may contain keys of other types; they are skipped.
#[derive(Deserialize)]
struct PublishedKey {
    kid: Option<String>,
    kty: String,
    crv: Option<String>,
    x: Option<String>,
}

impl JwksClient {
    pub(crate) fn new(http: reqwest::Client, config: &GuardConfig) -> Self {
        Self {
            http,
            url: format!("{}/.well-known/jwks.json", config.public_url.trim_end_matches('/')),
            key_ttl: config.key_ttl,
            min_fetch_interval: config.min_fetch_interval,
            timeout: config.timeout,
            clock: config.clock.clone(),
            known: ArcSwap::default(),
            last_fetch: Mutex::default(),
        }
    }

    /// Returns the key with this id, or `None` if daegi does not publish it.
    pub(crate) async fn find(&self, kid: &str) -> Result<Option<DecodingKey>, KeysUnavailable> {
        let known = self.known.load_full();
        match known.keys.get(kid) {
            Some(key) if !self.is_older_than(known.fetched_at, self.key_ttl) => {
                return Ok(Some(key.clone()));
            }
            // One request fetches; the others use the cached key meanwhile.
            Some(_) => {
                if let Ok(last_fetch) = self.last_fetch.try_lock() {
                    self.fetch_if_due(last_fetch).await;
                }
            }
            None => self.fetch_if_due(self.last_fetch.lock().await).await,
        }
        let known = self.known.load();
        if known.fetched_at.is_none() {
            return Err(KeysUnavailable);
        }
        Ok(known.keys.get(kid).cloned())
    }

    /// Fetches the keys unless the last attempt is more recent than `min_fetch_interval`. On failure
    /// the cached keys stay valid, so that a sale continues while daegi is unreachable.
    async fn fetch_if_due(&self, mut last_fetch: MutexGuard<'_, Option<Millis>>) {
        if !self.is_older_than(*last_fetch, self.min_fetch_interval) {
            return;
        }
        *last_fetch = Some(self.clock.now_ms());
        match self.fetch().await {
            Ok(keys) => self.known.store(Arc::new(KeySet { keys, fetched_at: *last_fetch })),
            Err(error) => {
                tracing::warn!(%error, "fetching daegi's public keys failed, using cached keys")
            }
        }
    }

    async fn fetch(&self) -> reqwest::Result<HashMap<String, DecodingKey>> {
        let request = self.http.get(&self.url).timeout(self.timeout);
        let response = request.send().await?.error_for_status()?;
        let published: Published = response.json().await?;
        Ok(published.keys.into_iter().filter_map(PublishedKey::usable).collect())
    }

    /// Returns whether `since` is at least `age` away. The absolute difference covers a clock that
    /// was set back.
    fn is_older_than(&self, since: Option<Millis>, age: Duration) -> bool {
        since.is_none_or(|since| u128::from(self.clock.now_ms().abs_diff(since)) >= age.as_millis())
    }
}

impl PublishedKey {
    fn usable(self) -> Option<(String, DecodingKey)> {
        if self.kty != "OKP" || self.crv.as_deref() != Some("Ed25519") {
            return None;
        }
        Some((self.kid?, DecodingKey::from_ed_components(&self.x?).ok()?))
    }
}

impl std::fmt::Debug for JwksClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kids: Vec<String> = self.known.load().keys.keys().cloned().collect();
        f.debug_struct("Keys").field("url", &self.url).field("kids", &kids).finish_non_exhaustive()
    }
}
