//! The keys that daegi publishes. They are kept, so that checking a pass asks nobody; they are
//! fetched anew when they are old, or when a pass names one that is not known: daegi may have
//! begun to sign with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use daegi_domain::Millis;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use tokio::sync::{Mutex, MutexGuard};

use crate::guard::{Clock, Setup};

/// daegi's published keys.
pub(crate) struct Keys {
    http: reqwest::Client,
    url: String,
    refresh: Duration,
    pause: Duration,
    timeout: Duration,
    clock: Clock,
    known: ArcSwap<Known>,
    /// When daegi was asked last. Held while it is asked: one question for all who wait for it.
    asked: Mutex<Option<Millis>>,
}

#[derive(Default)]
struct Known {
    keys: HashMap<String, DecodingKey>,
    fetched: Option<Millis>,
}

/// No keys were ever had, so nobody can say whether a pass is genuine.
#[derive(Debug)]
pub(crate) struct NoKeys;

#[derive(Deserialize)]
struct Published {
    keys: Vec<PublishedKey>,
}

/// A set may hold keys of other kinds, for others.
#[derive(Deserialize)]
struct PublishedKey {
    kid: Option<String>,
    kty: String,
    crv: Option<String>,
    x: Option<String>,
}

impl Keys {
    pub(crate) fn new(http: reqwest::Client, setup: &Setup) -> Self {
        Self {
            http,
            url: format!("{}/.well-known/jwks.json", setup.room.trim_end_matches('/')),
            refresh: setup.refresh,
            pause: setup.pause,
            timeout: setup.timeout,
            clock: setup.clock.clone(),
            known: ArcSwap::default(),
            asked: Mutex::default(),
        }
    }

    /// The key of this id, if daegi has published it.
    pub(crate) async fn find(&self, kid: &str) -> Result<Option<DecodingKey>, NoKeys> {
        let known = self.known.load_full();
        match known.keys.get(kid) {
            Some(key) if !self.over(known.fetched, self.refresh) => return Ok(Some(key.clone())),
            // While somebody asks, everybody else goes on with what is known.
            Some(_) => {
                if let Ok(asked) = self.asked.try_lock() {
                    self.ask(asked).await;
                }
            }
            None => self.ask(self.asked.lock().await).await,
        }
        let known = self.known.load();
        if known.fetched.is_none() {
            return Err(NoKeys);
        }
        Ok(known.keys.get(kid).cloned())
    }

    /// Asks, unless daegi was asked a moment ago, with or without success. What is known stays
    /// known while daegi does not answer: a sale goes on without it.
    async fn ask(&self, mut asked: MutexGuard<'_, Option<Millis>>) {
        if !self.over(*asked, self.pause) {
            return;
        }
        *asked = Some(self.clock.now_ms());
        match self.fetch().await {
            Ok(keys) => self.known.store(Arc::new(Known { keys, fetched: *asked })),
            Err(error) => tracing::warn!(%error, "the waiting room's keys cannot be fetched"),
        }
    }

    async fn fetch(&self) -> reqwest::Result<HashMap<String, DecodingKey>> {
        let question = self.http.get(&self.url).timeout(self.timeout);
        let answer = question.send().await?.error_for_status()?;
        let published: Published = answer.json().await?;
        Ok(published.keys.into_iter().filter_map(PublishedKey::usable).collect())
    }

    /// Whether this was so long ago. A clock that was set back must not make it last for ever.
    fn over(&self, since: Option<Millis>, long: Duration) -> bool {
        since
            .is_none_or(|since| u128::from(self.clock.now_ms().abs_diff(since)) >= long.as_millis())
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

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kids: Vec<String> = self.known.load().keys.keys().cloned().collect();
        f.debug_struct("Keys").field("url", &self.url).field("kids", &kids).finish_non_exhaustive()
    }
}
