//! Logs and metrics of a process.
//!
//! Logs go to stderr in every role, because the all-in-one binary prints its banner to stdout.
//! Metrics have one recorder per process, however many services run in it.

use std::any::Any;
use std::io::{self, IsTerminal};
use std::panic;
use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Unit, describe_counter};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Config, LogFormat};
use crate::http::{ERRORS, REFUSED};
use crate::shutdown::Shutdown;
use crate::spans::SPANS;

/// Upper bounds of histogram buckets in seconds: from a cached poll (0.5 ms) to a long poll (30 s).
const BUCKETS_SECONDS: [f64; 12] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// Upper bounds of histogram buckets of users or tickets, for names that end with `_people` or
/// `_tickets`.
const BUCKETS_COUNT: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// Interval at which recorded values are aggregated, so that memory stays bounded without a
/// scraper.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Initialises logs and metrics. Further calls, as in tests with several services, have no effect.
pub fn init(config: &Config) {
    recorder();
    // The configuration has validated the filter.
    let filter = EnvFilter::try_new(&config.log).unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    let first = match config.log_format {
        LogFormat::Text => logs.finish().try_init().is_ok(),
        LogFormat::Json => logs.json().flatten_event(true).finish().try_init().is_ok(),
    };
    if first {
        log_panics();
    }
}

/// Returns the metrics of this process in the Prometheus text format.
#[must_use]
pub fn render() -> String {
    recorder().render()
}

/// Aggregates recorded values until the shutdown.
pub(crate) async fn upkeep(shutdown: Shutdown) {
    let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
    while shutdown.token().run_until_cancelled(ticks.tick()).await.is_some() {
        recorder().run_upkeep();
    }
}

fn recorder() -> &'static PrometheusHandle {
    RECORDER.get_or_init(|| {
        let recorder = buckets().unwrap_or_else(|_| PrometheusBuilder::new()).build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is installed, /metrics stays empty");
        }
        describe();
        handle
    })
}

/// Registers the help texts of this crate's metrics.
fn describe() {
    let counters = [
        (ERRORS, "Responses with a status of 500 or more, by status"),
        (REFUSED, "Connections and requests that the limits of a listener rejected, by reason"),
        (SPANS, "Spans of this process, by result: sent, dropped or lost"),
    ];
    for (name, help) in counters {
        describe_counter!(name, Unit::Count, help);
    }
}

/// Sets the buckets of all histograms. Fails only for an empty list of buckets.
fn buckets() -> Result<PrometheusBuilder, BuildError> {
    let suffix = |end: &str| Matcher::Suffix(end.to_owned());
    PrometheusBuilder::new()
        .set_buckets(&BUCKETS_SECONDS)?
        .set_buckets_for_metric(suffix("_people"), &BUCKETS_COUNT)?
        .set_buckets_for_metric(suffix("_tickets"), &BUCKETS_COUNT)
}

/// Logs each panic as one log line. The default hook would print free text between JSON lines.
fn log_panics() {
    panic::set_hook(Box::new(|info| {
        let at = info.location().map(ToString::to_string).unwrap_or_default();
        let what = message(info.payload());
        tracing::error!(panic.at = at, panic.message = what, "panicked");
    }));
}

/// Returns the text of a panic payload, which is a literal or a formatted text.
fn message(payload: &(dyn Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    let formatted = || payload.downcast_ref::<String>().map(String::as_str);
    literal.or_else(formatted).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_values_are_rendered() {
        recorder();
        metrics::counter!("daegi_runtime_test_total").increment(3);
        metrics::histogram!("daegi_runtime_test_seconds").record(0.004);
        let text = render();
        assert!(text.contains("daegi_runtime_test_total 3"), "{text}");
        for name in [ERRORS, REFUSED, SPANS] {
            metrics::counter!(name).increment(0);
            assert!(render().contains(&format!("# HELP {name} ")), "{name}");
        }
        assert!(text.contains(r#"daegi_runtime_test_seconds_bucket{le="0.005"} 1"#), "{text}");
    }
}
