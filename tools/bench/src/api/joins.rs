//! Joins at 1 to 256 connections: against the baseline handler, long line against short line, and Redis CPU per join.
//!
//! Few connections matter because a reverse proxy in front of a pod keeps few.

use super::fixture::ApiFixture;
use super::wrk::{Load, Rounds};
use super::{Options, SHORT_LINE, rotation};
use crate::measurement::{Measurement, Target, median};
use crate::report::progress;

/// Concurrent connections, each with the ratio to the baseline that is required there.
const CONNECTIONS: [(usize, Target); 5] = [
    (1, Target::None),
    (8, Target::None),
    (64, Target::AtLeast(0.50)),
    (128, Target::None),
    (256, Target::AtLeast(0.60)),
];
const MAX_CONNECTIONS: usize = CONNECTIONS[4].0;

/// All rounds at one number of connections.
#[derive(Debug, Default)]
struct Series {
    pod: Rounds,
    baseline: Rounds,
    /// Redis CPU per join in microseconds.
    redis_us: Vec<f64>,
}

pub(super) async fn measure(
    fixture: &ApiFixture,
    options: &Options,
) -> anyhow::Result<Vec<Measurement>> {
    let mut series: [Series; CONNECTIONS.len()] = Default::default();
    let mut short = Rounds::default();
    for round in 0..=options.rounds {
        // A new line in each round, otherwise every round would measure a longer line.
        let users = options.users - options.users / 10;
        let line = fixture.line(&format!("join-long-{round}"), users).await?;
        let short_line = fixture.line(&format!("join-short-{round}"), SHORT_LINE).await?;
        for index in rotation(round, CONNECTIONS.len()) {
            let connections = CONNECTIONS[index].0;
            let load = Load::joins(&line.join_path(), &format!("c{connections}n"))?;
            let before = fixture.redis_cpu_seconds().await?;
            let pod = load.run(&fixture.pod, connections, options.seconds).await?;
            let redis_us = (fixture.redis_cpu_seconds().await? - before) * 1e6 / pod.requests;
            let baseline = load.run(&fixture.baseline, connections, options.seconds).await?;
            if round > 0 {
                series[index].pod.0.push(pod);
                series[index].baseline.0.push(baseline);
                series[index].redis_us.push(redis_us);
            }
        }
        let load = Load::joins(&short_line.join_path(), "s")?;
        let result = load.run(&fixture.pod, MAX_CONNECTIONS, options.seconds).await?;
        if round > 0 {
            short.0.push(result);
        }
        fixture.remove(line).await?;
        fixture.remove(short_line).await?;
        progress(&format!("joins: round {round} of {}", options.rounds));
    }
    Ok(measurements(&series, &short))
}

fn measurements(series: &[Series; CONNECTIONS.len()], short: &Rounds) -> Vec<Measurement> {
    let mut measurements = Vec::new();
    for ((connections, target), Series { pod, baseline, redis_us }) in
        CONNECTIONS.iter().zip(series)
    {
        let name = format!("join, {connections} connections, vs baseline handler");
        let redis_us = median(redis_us.clone());
        let detail = format!("{}; Redis {redis_us:.1} µs", pod.compared_with(baseline));
        measurements.push(
            Measurement::new(&name, pod.per_second() / baseline.per_second(), "", *target)
                .with_detail(detail)
                .with_rounds(pod.ratios(baseline)),
        );
    }
    let [one, eight, .., most] = series;
    let (rate, eight_rate) = (one.pod.per_second(), eight.pod.per_second());
    let (long_rate, short_rate) = (most.pod.per_second(), short.per_second());
    let redis = [one, most].map(|series| median(series.redis_us.clone()));
    measurements.extend([
        Measurement::ratio("join, 8 connections vs 1", eight_rate / rate, 4.0)
            .with_detail(format!("{eight_rate:.0}/s of {rate:.0}/s"))
            .with_rounds(eight.pod.ratios(&one.pod)),
        Measurement::ratio("join, long line vs 1,000 waiting", long_rate / short_rate, 0.90)
            .with_detail(format!(
                "{long_rate:.0}/s of {short_rate:.0}/s; {MAX_CONNECTIONS} connections"
            ))
            .with_rounds(most.pod.ratios(short)),
        // One connection has one join per script call, so this ratio is what batching saves.
        Measurement::new(
            "Redis CPU per join, 256 connections vs 1",
            redis[1] / redis[0],
            "",
            Target::AtMost(0.3),
        )
        .with_detail(format!("{:.1} µs of {:.1} µs", redis[1], redis[0])),
    ]);
    measurements
}
