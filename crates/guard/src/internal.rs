//! daegi's internal listener, which knows more than a pass can say.

use std::time::Duration;

use daegi_domain::ItemId;
use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Asks and tells daegi about entries.
#[derive(Debug)]
pub(crate) struct Internal {
    http: Client,
    address: String,
    timeout: Duration,
}

#[derive(Deserialize)]
struct Verdict {
    valid: bool,
}

#[derive(Deserialize)]
struct Completed {
    released: bool,
}

impl Internal {
    pub(crate) fn new(http: Client, address: &str, timeout: Duration) -> Self {
        Self { http, address: address.trim_end_matches('/').to_owned(), timeout }
    }

    /// Whether the holder of this pass may be inside now.
    pub(crate) async fn is_inside(&self, item: &ItemId, pass: &str) -> reqwest::Result<bool> {
        let verdict: Verdict = self.call(item, "verify", json!({ "pass": pass })).await?;
        Ok(verdict.valid)
    }

    /// Ends an entry, and answers whether it had not ended yet.
    pub(crate) async fn complete(&self, item: &ItemId, token: &str) -> reqwest::Result<bool> {
        let completed: Completed = self.call(item, "complete", json!({ "token": token })).await?;
        Ok(completed.released)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        item: &ItemId,
        what: &str,
        body: Value,
    ) -> reqwest::Result<T> {
        let url = format!("{}/internal/v1/item/{item}/entry/{what}", self.address);
        let question = self.http.post(url).timeout(self.timeout).json(&body);
        question.send().await?.error_for_status()?.json().await
    }
}
