//! A real Prometheus with the project's configuration and shortened intervals.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use daegi_testkit::{ChildProcess, FleetProcess, eventually, free_port};
use serde_json::Value;

use super::TEST_TIMEOUT;
use super::fleet::{file, with_addresses};

/// A Prometheus process that scrapes the fleet.
pub(super) struct Prometheus {
    url: String,
    _process: ChildProcess,
}

impl Prometheus {
    pub(super) fn start(
        binary: &Path,
        dir: &Path,
        processes: &BTreeMap<&'static str, FleetProcess>,
    ) -> Self {
        let alerts = dir.join("alerts.yml");
        fs::write(&alerts, shortened(&file("infra/helm/daegi/files/alerts.yml"))).unwrap();
        let conf = with_addresses(&file("infra/prometheus/prometheus.yml"), processes)
            .replace("interval: 5s", "interval: 1s")
            .replace("/etc/prometheus/alerts.yml", &alerts.to_string_lossy());
        fs::write(dir.join("prometheus.yml"), conf).unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = Command::new(binary);
        command
            .arg(format!("--config.file={}", dir.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", dir.join("prometheus").display()))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::null());
        Self { url: format!("http://{address}"), _process: command.spawn().unwrap().into() }
    }

    /// Returns `data` of an API call. Retries until Prometheus answers.
    pub(super) async fn query(&self, path: &str) -> Value {
        let url = format!("{}/api/v1/{path}", self.url);
        let query = async || -> Option<Value> { reqwest::get(&url).await.ok()?.json().await.ok() };
        eventually(TEST_TIMEOUT, "Prometheus answers", query).await["data"].take()
    }

    pub(super) async fn is_firing(&self, alert: &str) -> bool {
        let alerts = self.query("alerts").await;
        let firing = |one: &Value| one["labels"]["alertname"] == alert && one["state"] == "firing";
        alerts["alerts"].as_array().unwrap().iter().any(firing)
    }

    /// Waits until an alert fires.
    pub(super) async fn fires(&self, alert: &str) {
        eventually(TEST_TIMEOUT, &format!("{alert} fires"), || self.is_firing(alert)).await;
    }

    /// Waits until the rule was evaluated and is inactive.
    pub(super) async fn is_quiet(&self, alert: &str) {
        eventually(TEST_TIMEOUT, &format!("{alert} is inactive"), async || {
            let groups = self.query("rules").await["groups"].take();
            let rules =
                groups.as_array().unwrap().iter().flat_map(|group| group["rules"].as_array());
            let mut rules = rules.flatten().filter(|rule| rule["name"] == alert);
            rules.any(|rule| rule["health"] == "ok" && rule["state"] == "inactive")
        })
        .await;
    }
}

/// Shortens the durations of alert rules from minutes to seconds.
fn shortened(rules: &str) -> String {
    let shorten = |line: &str| match line.trim_start().starts_with("for: ") {
        true => "        for: 1s".to_owned(),
        false => line.replace("[5m]", "[10s]").replace("[2m]", "[10s]").replace("[1m]", "[10s]"),
    };
    rules.lines().map(shorten).collect::<Vec<_>>().join("\n")
}
