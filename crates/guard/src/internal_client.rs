//! Client of daegi's internal listener, which knows whether an entry has ended.

use std::time::Duration;

use daegi_domain::ItemId;
use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Verifies and completes entries.
#[derive(Debug)]
pub(crate) struct InternalClient {
    http: Client,
    url: String,
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

impl InternalClient {
    pub(crate) fn new(http: Client, url: &str, timeout: Duration) -> Self {
        Self { http, url: url.trim_end_matches('/').to_owned(), timeout }
    }

    /// Returns whether the entry of this pass is still live.
    pub(crate) async fn has_entry(&self, item: &ItemId, pass: &str) -> reqwest::Result<bool> {
        let verdict: Verdict = self.call(item, "verify", json!({ "pass": pass })).await?;
        Ok(verdict.valid)
    }

    /// Ends an entry. Returns false if it had already ended.
    pub(crate) async fn complete(&self, item: &ItemId, token: &str) -> reqwest::Result<bool> {
        let completed: Completed = self.call(item, "complete", json!({ "token": token })).await?;
        Ok(completed.released)
    }

    /// Reports the health of this service.
    pub(crate) async fn report_health(&self, item: &ItemId, report: &Value) -> reqwest::Result<()> {
        let url = format!("{}/internal/v1/item/{item}/origin-health", self.url);
        let request = self.http.post(url).timeout(self.timeout).json(report);
        request.send().await?.error_for_status().map(drop)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        item: &ItemId,
        operation: &str,
        body: Value,
    ) -> reqwest::Result<T> {
        let url = format!("{}/internal/v1/item/{item}/entry/{operation}", self.url);
        let request = self.http.post(url).timeout(self.timeout).json(&body);
        request.send().await?.error_for_status()?.json().await
    }
}
