//! A real Prometheus with the project's own files, in a hurry.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use daegi_testkit::{ChildProcess, FleetProcess, eventually, free_port};
use serde_json::Value;

use super::SOON;
use super::stage::{at_home, file};

/// Prometheus, which scrapes the fleet of the stage.
pub(super) struct Prometheus {
    url: String,
    _process: ChildProcess,
}

impl Prometheus {
    pub(super) fn start(
        binary: &Path,
        dir: &Path,
        members: &BTreeMap<&'static str, FleetProcess>,
    ) -> Self {
        let alerts = dir.join("alerts.yml");
        fs::write(&alerts, hurried(&file("infra/helm/daegi/files/alerts.yml"))).unwrap();
        let conf = at_home(&file("infra/prometheus/prometheus.yml"), members)
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

    /// What it answers, as soon as it does.
    pub(super) async fn ask(&self, path: &str) -> Value {
        let url = format!("{}/api/v1/{path}", self.url);
        let ask = async || -> Option<Value> { reqwest::get(&url).await.ok()?.json().await.ok() };
        eventually(SOON, "Prometheus answers", ask).await["data"].take()
    }

    pub(super) async fn is_firing(&self, alert: &str) -> bool {
        let alerts = self.ask("alerts").await;
        let firing = |one: &Value| one["labels"]["alertname"] == alert && one["state"] == "firing";
        alerts["alerts"].as_array().unwrap().iter().any(firing)
    }

    /// Waits for an alert.
    pub(super) async fn fires(&self, alert: &str) {
        eventually(SOON, &format!("{alert} fires"), || self.is_firing(alert)).await;
    }

    /// Waits until the rules were looked at and this one has nothing to say.
    pub(super) async fn is_quiet(&self, alert: &str) {
        eventually(SOON, &format!("{alert} is quiet"), async || {
            let groups = self.ask("rules").await["groups"].take();
            let rules =
                groups.as_array().unwrap().iter().flat_map(|group| group["rules"].as_array());
            let mut rules = rules.flatten().filter(|rule| rule["name"] == alert);
            rules.any(|rule| rule["health"] == "ok" && rule["state"] == "inactive")
        })
        .await;
    }
}

/// The same rules, for a fleet whose minutes are seconds.
fn hurried(rules: &str) -> String {
    let hurry = |line: &str| match line.trim_start().starts_with("for: ") {
        true => "        for: 1s".to_owned(),
        false => line.replace("[5m]", "[10s]").replace("[2m]", "[10s]").replace("[1m]", "[10s]"),
    };
    rules.lines().map(hurry).collect::<Vec<_>>().join("\n")
}
