//! The keys that daegi publishes. They are kept, so that checking a pass asks nobody; a key that
//! is not known yet is looked for once, because daegi may have begun to sign with a new one.

use std::time::Duration;

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::JwkSet;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Who brings passes with made-up keys must not make us ask daegi each time.
const PAUSE: Duration = Duration::from_secs(5);

/// daegi's published keys.
#[derive(Debug)]
pub struct Keys {
    http: reqwest::Client,
    url: String,
    pause: Duration,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    keys: JwkSet,
    asked: Option<Instant>,
}

impl Keys {
    /// The keys of the daegi at this public address. Nothing is fetched yet.
    #[must_use]
    pub fn of(api: &str) -> Self {
        Self {
            http: crate::http_client(),
            url: format!("{}/.well-known/jwks.json", api.trim_end_matches('/')),
            pause: PAUSE,
            known: Mutex::new(Known { keys: JwkSet { keys: Vec::new() }, asked: None }),
        }
    }

    /// Asks again for unknown keys after this long at the earliest.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The key of this id, if daegi has published it.
    ///
    /// # Errors
    /// If daegi must be asked and does not answer.
    pub async fn find(&self, kid: &str) -> reqwest::Result<Option<DecodingKey>> {
        // Held while daegi is asked: everybody who meets the new key at once shares one question.
        let mut known = self.known.lock().await;
        if known.keys.find(kid).is_none() && known.may_ask(self.pause) {
            known.keys = self.fetch().await?;
            known.asked = Some(Instant::now());
        }
        Ok(known.keys.find(kid).and_then(|key| DecodingKey::from_jwk(key).ok()))
    }

    async fn fetch(&self) -> reqwest::Result<JwkSet> {
        self.http.get(&self.url).send().await?.error_for_status()?.json().await
    }
}

impl Known {
    fn may_ask(&self, pause: Duration) -> bool {
        self.asked.is_none_or(|asked| asked.elapsed() >= pause)
    }
}
