//! Closed-loop load from `wrk`: every connection sends its next request as soon as the last one is answered.

use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, ensure};
use tempfile::NamedTempFile;
use tokio::process::Command;

use super::fixture::Server;
use crate::measurement::median;

const MISSING: &str = "wrk is missing and generates all load: install it (apt install wrk)";

/// The result of one load.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LoadResult {
    pub(super) requests: f64,
    pub(super) per_second: f64,
    /// CPU of the server per request, in microseconds.
    pub(super) cpu_us: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// The results of all rounds of one load.
#[derive(Debug, Default)]
pub(super) struct Rounds(pub(super) Vec<LoadResult>);

impl Rounds {
    pub(super) fn median(&self, field: impl Fn(&LoadResult) -> f64) -> f64 {
        median(self.0.iter().map(field).collect())
    }

    pub(super) fn per_second(&self) -> f64 {
        self.median(|result| result.per_second)
    }

    /// The rate of each round divided by the rate of the same round of another load.
    pub(super) fn ratios(&self, other: &Self) -> Vec<f64> {
        let pairs = self.0.iter().zip(&other.0);
        pairs.map(|(own, other)| own.per_second / other.per_second).collect()
    }

    /// Rates, CPU and latency of this load and of the baseline.
    pub(super) fn compared_with(&self, baseline: &Self) -> String {
        let of = |field: fn(&LoadResult) -> f64| (self.median(field), baseline.median(field));
        let ((rate, other_rate), (cpu, other_cpu)) = (of(|it| it.per_second), of(|it| it.cpu_us));
        let ((p50, other_p50), (p99, other_p99)) = (of(|it| it.p50_ms), of(|it| it.p99_ms));
        format!(
            "{rate:.0}/s of {other_rate:.0}/s; CPU {cpu:.1} µs of {other_cpu:.1} µs; p50 {p50:.2} ms of {other_p50:.2} ms; \
             p99 {p99:.2} ms of {other_p99:.2} ms"
        )
    }
}

/// A `wrk` script with its input file.
pub(super) struct Load {
    script: &'static str,
    input: NamedTempFile,
    /// Index of the first request. Each run continues where the last one stopped, so that short runs reach all paths.
    next: AtomicUsize,
}

impl Load {
    /// Polls these paths in turn.
    pub(super) fn polls(paths: &[String]) -> anyhow::Result<Self> {
        Self::new(include_str!("../../wrk/polls.lua"), &paths.join("\n"))
    }

    /// Sends these cookies to one path in turn.
    pub(super) fn cookies(path: &str, cookies: &[String]) -> anyhow::Result<Self> {
        Self::new(include_str!("../../wrk/gate.lua"), &format!("{path}\n{}", cookies.join("\n")))
    }

    /// Joins users that have no ticket yet. `prefix` begins their ids and must differ between the loads on one line.
    pub(super) fn joins(path: &str, prefix: &str) -> anyhow::Result<Self> {
        Self::new(include_str!("../../wrk/joins.lua"), &format!("{path}\n{prefix}"))
    }

    fn new(script: &'static str, text: &str) -> anyhow::Result<Self> {
        let mut input = NamedTempFile::new()?;
        input.write_all(text.as_bytes())?;
        Ok(Self { script, input, next: AtomicUsize::new(0) })
    }

    pub(super) async fn run(
        &self,
        server: &Server,
        connections: usize,
        seconds: u32,
    ) -> anyhow::Result<LoadResult> {
        let mut script = tempfile::Builder::new().suffix(".lua").tempfile()?;
        script.write_all(self.script.as_bytes())?;
        let before = server.cpu_seconds()?;
        let output = Command::new("wrk")
            .args(["-t1", "-c", &connections.to_string(), "-d", &format!("{seconds}s")])
            .args(["--latency", "-s"])
            .arg(script.path())
            .arg(format!("http://{}", server.address))
            .arg(self.input.path())
            .arg(self.next.load(Ordering::Relaxed).to_string())
            .stderr(Stdio::inherit())
            .output()
            .await
            .context(MISSING)?;
        let cpu = server.cpu_seconds()? - before;
        let text = String::from_utf8(output.stdout)?;
        ensure!(output.status.success(), "wrk failed: {text}");
        ensure!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "errors: {text}");
        let mut result = parse(&text).with_context(|| format!("output of wrk: {text}"))?;
        result.cpu_us = cpu * 1e6 / result.requests;
        self.next.fetch_add(result.requests as usize, Ordering::Relaxed);
        Ok(result)
    }
}

/// The version of the installed `wrk`.
pub(super) fn version() -> anyhow::Result<String> {
    // `wrk -v` prints the version and then a usage error.
    let output = std::process::Command::new("wrk").arg("-v").output().context(MISSING)?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split_whitespace().nth(1).context(MISSING)?.to_owned())
}

/// Everything but the CPU, from the output of `wrk --latency`.
fn parse(text: &str) -> Option<LoadResult> {
    let field = |prefix: &str| text.lines().find_map(|line| line.trim().strip_prefix(prefix));
    let requests = text.lines().find_map(|line| line.trim().split_once(" requests in"))?.0;
    Some(LoadResult {
        requests: requests.parse().ok()?,
        per_second: field("Requests/sec:")?.trim().parse().ok()?,
        cpu_us: 0.0,
        p50_ms: milliseconds(field("50%")?.trim())?,
        p99_ms: milliseconds(field("99%")?.trim())?,
    })
}

fn milliseconds(text: &str) -> Option<f64> {
    let unit = text.find(char::is_alphabetic)?;
    let factor = match &text[unit..] {
        "us" => 1e-3,
        "ms" => 1.0,
        "s" => 1e3,
        _ => return None,
    };
    Some(text[..unit].parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_wrk_is_parsed() {
        let text = "  Latency Distribution\n     50%  250.00us\n     99%    1.90ms\n  \
                    3805 requests in 1.00s, 1.50MB read\nRequests/sec:   3804.50\n";
        let result = parse(text).unwrap();
        assert_eq!((result.requests, result.per_second), (3805.0, 3804.5));
        assert_eq!((result.p50_ms, result.p99_ms), (0.25, 1.9));
    }
}
