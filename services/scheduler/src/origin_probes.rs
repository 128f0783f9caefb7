//! Probes of origins: health addresses and queries of Prometheus, as policies with an adaptive pace name them.
//!
//! A tick must not wait for an origin. It reads the latest result of a probe, and a task of the term runs the probes that
//! ticks asked for lately. Only operators can set the addresses; redirects are not followed, and responses are read to
//! a limit and not returned.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use daegi_domain::pace::origin::{LatencyHistogram, OriginSignal};
use daegi_domain::pace::{AdaptivePace, PrometheusPace};
use futures_util::future::join_all;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::time::Instant;

/// How often a health address is requested.
const HEALTH_INTERVAL: Duration = Duration::from_secs(1);

/// How often Prometheus is asked: its own scrapes are rarely more frequent.
const PROMETHEUS_INTERVAL: Duration = Duration::from_secs(5);

/// Timeout of one request. A health address that takes longer counts as an error of this duration.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Health requests whose percentile and errors are a signal.
const HEALTH_SAMPLES: usize = 5;

/// Maximum size of a response of Prometheus.
const MAX_RESPONSE: usize = 65_536;

/// How long a target is probed after the last tick that asked for it.
const FORGET_AFTER: Duration = Duration::from_secs(90);

/// Maximum number of targets; further ones have no signal.
const MAX_TARGETS: usize = 1_000;

/// How often the task looks for probes that are due.
const PAUSE: Duration = Duration::from_millis(200);

/// The probes of a scheduler.
#[derive(Debug)]
pub struct OriginProbes {
    http: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    targets: Mutex<BTreeMap<Target, Probe>>,
}

/// What is probed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Health(String),
    Prometheus { url: String, p95: String, errors: Option<String> },
}

#[derive(Debug)]
struct Probe {
    asked_at: Instant,
    due_at: Instant,
    is_running: bool,
    /// Response times and whether each was a success, the oldest first.
    health: VecDeque<(Duration, bool)>,
    /// The latest result, and when it was measured.
    result: Option<(OriginSignal, Instant)>,
}

impl OriginProbes {
    /// Creates probes with the certificate authorities of this machine; without any, `https://` targets fail.
    #[must_use]
    pub fn new() -> Self {
        let builder = HttpsConnectorBuilder::new();
        let builder = match builder.with_provider_and_native_roots(ring::default_provider()) {
            Ok(builder) => builder,
            Err(error) => {
                let component = "origin probes";
                tracing::warn!(component, %error, "no certificate authorities, https addresses of paces cannot be probed");
                HttpsConnectorBuilder::new().with_tls_config(without_roots())
            }
        };
        let http = Client::builder(TokioExecutor::new())
            .build(builder.https_or_http().enable_http1().build());
        Self { http, targets: Mutex::default() }
    }

    /// Returns the latest signal of the probes that a pace names; `None` if it names none or nothing is known. They are
    /// run from now on.
    #[must_use]
    pub fn signal(&self, pace: &AdaptivePace) -> Option<OriginSignal> {
        let health = pace.health_url.clone().map(Target::Health);
        let prometheus = pace.prometheus.as_ref().map(Target::of_prometheus);
        let now = Instant::now();
        let signals =
            health.into_iter().chain(prometheus).filter_map(|target| self.latest(target, now));
        signals.reduce(OriginSignal::worst)
    }

    fn latest(&self, target: Target, now: Instant) -> Option<OriginSignal> {
        let max_age = 3 * target.interval() + REQUEST_TIMEOUT;
        let mut targets = self.targets();
        if targets.len() >= MAX_TARGETS && !targets.contains_key(&target) {
            return None;
        }
        let probe = targets.entry(target).or_insert_with(|| Probe::new(now));
        probe.asked_at = now;
        probe.result.filter(|(_, at)| now - *at < max_age).map(|(signal, _)| signal)
    }

    /// Runs the probes. Never returns.
    pub async fn run(self: Arc<Self>) {
        loop {
            let due = self.take_due(Instant::now());
            // A slow target delays no other one: each round waits for its own probes at most REQUEST_TIMEOUT.
            join_all(due.into_iter().map(|target| self.probe(target))).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn take_due(&self, now: Instant) -> Vec<Target> {
        let mut targets = self.targets();
        targets.retain(|_, probe| now - probe.asked_at < FORGET_AFTER);
        let due = targets.iter_mut().filter(|(_, probe)| !probe.is_running && probe.due_at <= now);
        due.map(|(target, probe)| {
            (probe.is_running, probe.due_at) = (true, now + target.interval());
            target.clone()
        })
        .collect()
    }

    async fn probe(&self, target: Target) {
        let started = Instant::now();
        let outcome = match &target {
            Target::Health(url) => {
                let response = tokio::time::timeout(REQUEST_TIMEOUT, self.get(url)).await;
                let is_well = matches!(&response, Ok(Ok((status, _))) if status.as_u16() < 500);
                Outcome::Health(started.elapsed(), is_well)
            }
            Target::Prometheus { url, p95, errors } => {
                let p95 = self.query(url, p95).await;
                let errors = match errors {
                    Some(query) => self.query(url, query).await,
                    None => Some(0.0),
                };
                Outcome::Prometheus(p95.zip(errors))
            }
        };
        if let Some(probe) = self.targets().get_mut(&target) {
            probe.record(outcome, Instant::now());
        }
    }

    /// Returns the first value of an instant query; `None` if there is none.
    async fn query(&self, base: &str, query: &str) -> Option<f64> {
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let url = format!("{}/api/v1/query?query={query}", base.trim_end_matches('/'));
        let response = tokio::time::timeout(REQUEST_TIMEOUT, self.get(&url)).await;
        match response {
            Ok(Ok((StatusCode::OK, body))) => first_value(&body),
            _ => None,
        }
    }

    async fn get(
        &self,
        url: &str,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let uri: Uri = url.parse()?;
        let response = self.http.request(Request::get(uri).body(Empty::new())?).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_RESPONSE).collect().await?.to_bytes();
        Ok((status, body))
    }

    fn targets(&self) -> MutexGuard<'_, BTreeMap<Target, Probe>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for OriginProbes {
    fn default() -> Self {
        Self::new()
    }
}

enum Outcome {
    Health(Duration, bool),
    /// The percentile in seconds, and the share of errors.
    Prometheus(Option<(f64, f64)>),
}

impl Target {
    fn of_prometheus(prometheus: &PrometheusPace) -> Self {
        let PrometheusPace { url, p95_query, error_query } = prometheus.clone();
        Self::Prometheus { url, p95: p95_query, errors: error_query }
    }

    fn interval(&self) -> Duration {
        match self {
            Self::Health(_) => HEALTH_INTERVAL,
            Self::Prometheus { .. } => PROMETHEUS_INTERVAL,
        }
    }
}

impl Probe {
    fn new(now: Instant) -> Self {
        Self {
            asked_at: now,
            due_at: now,
            is_running: false,
            health: VecDeque::new(),
            result: None,
        }
    }

    fn record(&mut self, outcome: Outcome, now: Instant) {
        self.is_running = false;
        let signal = match outcome {
            Outcome::Health(took, is_well) => {
                if self.health.len() == HEALTH_SAMPLES {
                    self.health.pop_front();
                }
                self.health.push_back((took, is_well));
                Some(health_signal(&self.health))
            }
            Outcome::Prometheus(values) => {
                values.map(|(p95, errors)| prometheus_signal(p95, errors))
            }
        };
        // Without a value nothing is known: the earlier result ages.
        if let Some(signal) = signal {
            self.result = Some((signal, now));
        }
    }
}

fn health_signal(samples: &VecDeque<(Duration, bool)>) -> OriginSignal {
    let mut latency = LatencyHistogram::default();
    samples.iter().for_each(|(took, _)| latency.add(took.as_secs_f64() * 1000.0, 1));
    let failed = samples.iter().filter(|(_, is_well)| !is_well).count();
    let error_permille = u32::try_from(failed * 1000 / samples.len().max(1)).unwrap_or(1000);
    OriginSignal { requests: 0, p95_ms: latency.p95_ms(), error_permille }
}

fn prometheus_signal(p95_seconds: f64, errors: f64) -> OriginSignal {
    let p95 = (p95_seconds * 1000.0).clamp(1.0, 3_600_000.0) as u32;
    let error_permille = (errors * 1000.0).clamp(0.0, 1000.0) as u32;
    OriginSignal { requests: 0, p95_ms: Some(p95), error_permille }
}

/// Returns the value of a response of `/api/v1/query`: the scalar, or the first element of the vector. NaN, as of a
/// quotient without requests, is no value.
fn first_value(body: &[u8]) -> Option<f64> {
    let response: Value = serde_json::from_slice(body).ok()?;
    let data = &response["data"];
    let value = match data["resultType"].as_str()? {
        "vector" => &data["result"][0]["value"][1],
        "scalar" => &data["result"][1],
        _ => return None,
    };
    value.as_str()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// TLS that trusts no certificate.
fn without_roots() -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(ring::default_provider().into());
    #[expect(clippy::expect_used, reason = "the provider supports the default versions")]
    let builder = builder.with_safe_default_protocol_versions().expect("default versions");
    builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_and_a_scalar_have_a_value_and_nan_has_none() {
        let vector = br#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0.25"]}]}}"#;
        assert_eq!(first_value(vector), Some(0.25));
        let scalar = br#"{"status":"success","data":{"resultType":"scalar","result":[1,"0.5"]}}"#;
        assert_eq!(first_value(scalar), Some(0.5));
        let empty = br#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
        let nan = br#"{"status":"success","data":{"resultType":"scalar","result":[1,"NaN"]}}"#;
        for none in [empty.as_slice(), nan, b"{}", b"502"] {
            assert_eq!(first_value(none), None);
        }
    }

    #[test]
    fn a_failed_health_request_is_an_error() {
        let samples =
            VecDeque::from([(Duration::from_millis(20), true), (Duration::from_secs(2), false)]);
        let signal = health_signal(&samples);
        assert_eq!(signal.error_permille, 500);
        assert!(signal.p95_ms >= Some(1_600), "{signal:?}");
    }
}
