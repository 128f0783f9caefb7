//! The seven scenarios that users notice: cold start, polls, joins, admissions, openings, open connections, and the gate.
//!
//! Redis and one api pod run as child processes; the load comes from `wrk`. The baseline is an axum handler in its own process
//! that only returns JSON of a ticket's size, under the same load.

mod admissions;
mod baseline;
mod callgrind;
mod cold_start;
mod fixture;
mod gate;
mod joins;
mod line;
mod longest_script;
mod moving_line;
mod openings;
mod polls;
mod stream_client;
mod streams;
mod wrk;

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};

use crate::measurement::Measurement;
use crate::report::{self, progress};
pub(crate) use baseline::Baseline;
use fixture::ApiFixture;
use stream_client::Transport;

/// Users in the short line that a long line is compared with.
const SHORT_LINE: usize = 1_000;

/// The order of the loads of one round. Another load begins each round, because a shared machine may be slower after one load
/// than after another.
fn rotation(round: usize, loads: usize) -> impl Iterator<Item = usize> {
    (0..loads).map(move |turn| (round + turn) % loads)
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Users waiting in the long line.
    #[arg(long, default_value_t = 1_000_000)]
    users: usize,
    /// Rounds that count. One more before them warms up.
    #[arg(long, default_value_t = 12)]
    rounds: usize,
    /// Seconds of load per round. Many short rounds are more stable than few long ones on a shared machine.
    #[arg(long, default_value_t = 1)]
    seconds: u32,
    /// Streams held open to one pod.
    #[arg(long, default_value_t = 10_000)]
    streams: usize,
    /// Runs only these scenarios and writes no files.
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Scenario>,
    /// Writes all measurements to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Draws the measurements with targets to this file.
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// In the order in which they run: the cold start first, because it also measures Redis memory from an empty store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    ColdStart,
    Polls,
    Joins,
    Admissions,
    Openings,
    Connections,
    Gate,
}

impl Scenario {
    async fn measure(
        self,
        fixture: &ApiFixture,
        options: &Options,
    ) -> anyhow::Result<Vec<Measurement>> {
        match self {
            Self::ColdStart => cold_start::measure(fixture, options).await,
            Self::Polls => polls::measure(fixture, options).await,
            Self::Joins => joins::measure(fixture, options).await,
            Self::Admissions => admissions::measure(fixture, options).await,
            Self::Openings => openings::measure(fixture, options).await,
            Self::Connections => {
                let mut measurements = streams::measure(fixture, options, Transport::Sse).await?;
                let sockets = streams::measure(fixture, options, Transport::WebSocket).await?;
                measurements.extend(sockets);
                Ok(measurements)
            }
            Self::Gate => gate::measure(fixture, options).await,
        }
    }
}

pub(crate) async fn run(options: Options) -> anyhow::Result<()> {
    let wrk = wrk::version()?;
    progress("starting Redis, a pod and the baseline handler");
    let fixture = ApiFixture::start().await?;
    let mut measurements = Vec::new();
    let finished = measure_all(&fixture, &options, &mut measurements).await;
    report::print(&measurements);
    finished?;
    if !options.only.is_empty() {
        progress("--only is set: no files written");
        return Ok(());
    }
    let versions = fixture.versions(&wrk).await?;
    if let Some(path) = &options.json {
        report::write_json(path, &measurements, &versions)?;
    }
    options.svg.map_or(Ok(()), |path| report::write_svg(&path, &measurements, &versions))
}

/// Appends to `measurements`, so that the table shows what was measured before a scenario failed.
async fn measure_all(
    fixture: &ApiFixture,
    options: &Options,
    measurements: &mut Vec<Measurement>,
) -> anyhow::Result<()> {
    for scenario in Scenario::value_variants() {
        if options.only.is_empty() || options.only.contains(scenario) {
            let measured = scenario.measure(fixture, options).await;
            measurements.extend(measured.with_context(|| format!("{scenario:?}"))?);
        }
    }
    Ok(())
}
