//! Fetches and caches daegi's public keys (JWKS), so that checking a pass needs no call. The keys
//! are fetched again when they are older than `key_ttl`, or when a pass names an unknown key id,
//! because daegi may have rotated its keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use daegi_domain::Millis;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use tokio::sync::{Mutex, MutexGuard};

use crate::guard::{Clock, GuardConfig};

/// The keys of a guard.
#[derive(Debug)]
pub(crate) enum Keys {
    /// Fetched from daegi.
    Fetched(JwksClient),
    /// Given to the guard.
    Fixed(HashMap<String, PublicKey>),
}

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
    keys: HashMap<String, PublicKey>,
    fetched_at: Option<Millis>,
}

/// A key that verifies signatures of exactly one algorithm.
#[derive(Debug, Clone)]
pub(crate) struct PublicKey {
    pub(crate) algorithm: Algorithm,
    pub(crate) decoding: DecodingKey,
}

/// Minimum characters of an RSA modulus in base64url: 2048 bits (RFC 7518).
const MIN_MODULUS: usize = 342;

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
    alg: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

impl Keys {
    /// Returns the key with this id, or `None` if daegi does not publish it.
    pub(crate) async fn find(&self, kid: &str) -> Result<Option<PublicKey>, KeysUnavailable> {
        match self {
            Self::Fetched(client) => client.find(kid).await,
            Self::Fixed(keys) => Ok(keys.get(kid).cloned()),
        }
    }
}

/// Parses a JSON Web Key Set.
pub(crate) fn parse_keys(json: &[u8]) -> serde_json::Result<HashMap<String, PublicKey>> {
    let published: Published = serde_json::from_slice(json)?;
    Ok(published.keys.into_iter().filter_map(PublishedKey::usable).collect())
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
    pub(crate) async fn find(&self, kid: &str) -> Result<Option<PublicKey>, KeysUnavailable> {
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

    async fn fetch(&self) -> reqwest::Result<HashMap<String, PublicKey>> {
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
    /// Returns the key and the one algorithm that it verifies. Keys of other kinds are skipped.
    fn usable(self) -> Option<(String, PublicKey)> {
        let (name, algorithm, decoding) = match (&*self.kty, self.crv.as_deref()) {
            ("OKP", Some("Ed25519")) => {
                ("EdDSA", Algorithm::EdDSA, DecodingKey::from_ed_components(&self.x?))
            }
            ("EC", Some("P-256")) => {
                ("ES256", Algorithm::ES256, DecodingKey::from_ec_components(&self.x?, &self.y?))
            }
            ("RSA", None) => {
                let n = self.n.filter(|n| n.len() >= MIN_MODULUS)?;
                ("RS256", Algorithm::RS256, DecodingKey::from_rsa_components(&n, &self.e?))
            }
            _ => return None,
        };
        if self.alg.is_some_and(|alg| alg != name) {
            return None;
        }
        Some((self.kid?, PublicKey { algorithm, decoding: decoding.ok()? }))
    }
}

impl std::fmt::Debug for JwksClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kids: Vec<String> = self.known.load().keys.keys().cloned().collect();
        f.debug_struct("Keys").field("url", &self.url).field("kids", &kids).finish_non_exhaustive()
    }
}
