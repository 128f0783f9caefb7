//! Logs and metrics of a process.
//!
//! Logs go to stderr in every role, because the all-in-one binary prints its banner to stdout.
//! Metrics are one recorder per process, whatever number of services run in it.

use std::any::Any;
use std::io::{self, IsTerminal};
use std::panic;
use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Config, LogFormat};
use crate::shutdown::Shutdown;

/// Upper bounds of histogram buckets in seconds: from a poll out of memory to a long poll.
const BUCKETS_SECONDS: [f64; 12] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// The same for histograms that count people or tickets, known by their names' ends.
const BUCKETS_PEOPLE: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

/// How often recorded values are folded into their buckets, so that memory stays flat even where
/// nobody scrapes.
const UPKEEP: Duration = Duration::from_secs(5);

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Starts logs and metrics. Calling it again, as tests with several services do, changes nothing.
pub fn init(config: &Config) {
    recorder();
    // The configuration has checked the filter already.
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

/// The metrics of this process as Prometheus reads them.
#[must_use]
pub fn render() -> String {
    recorder().render()
}

/// Keeps the recorder's memory flat until shutdown.
pub(crate) async fn upkeep(shutdown: Shutdown) {
    let mut ticks = tokio::time::interval(UPKEEP);
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
        handle
    })
}

/// Only an empty list of buckets is refused.
fn buckets() -> Result<PrometheusBuilder, BuildError> {
    let suffix = |end: &str| Matcher::Suffix(end.to_owned());
    PrometheusBuilder::new()
        .set_buckets(&BUCKETS_SECONDS)?
        .set_buckets_for_metric(suffix("_people"), &BUCKETS_PEOPLE)?
        .set_buckets_for_metric(suffix("_tickets"), &BUCKETS_PEOPLE)
}

/// Makes a panic a log line like any other, once, instead of free text beside the JSON.
fn log_panics() {
    panic::set_hook(Box::new(|info| {
        let at = info.location().map(ToString::to_string).unwrap_or_default();
        let what = message(info.payload());
        tracing::error!(panic.at = at, panic.message = what, "panicked");
    }));
}

/// A panic carries a literal or a formatted text; anything else says nothing.
fn message(payload: &(dyn Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    let formatted = || payload.downcast_ref::<String>().map(String::as_str);
    literal.or_else(formatted).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_rendered() {
        recorder();
        metrics::counter!("daegi_runtime_test_total").increment(3);
        metrics::histogram!("daegi_runtime_test_seconds").record(0.004);
        let text = render();
        assert!(text.contains("daegi_runtime_test_total 3"), "{text}");
        assert!(text.contains(r#"daegi_runtime_test_seconds_bucket{le="0.005"} 1"#), "{text}");
    }
}
