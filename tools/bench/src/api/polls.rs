//! Polls of an open, moving line, in order of arrival and drawn: against the baseline handler, long line against short line, and Redis
//! commands per poll.

use super::fixture::ApiFixture;
use super::line::Line;
use super::wrk::{Load, LoadResult, Rounds};
use super::{Options, SHORT_LINE, rotation};
use crate::measurement::{Measurement, Target};
use crate::report::progress;

/// Distinct users that poll. `wrk` keeps all their requests in memory.
const POLLING_USERS: usize = 200_000;
const CONNECTIONS: usize = 256;
/// Long enough to include several refreshes of the line and several flushes of seen marks.
const COMMAND_SECONDS: u32 = 6;

struct PolledLine {
    line: Line,
    load: Load,
}

impl PolledLine {
    fn new(fixture: &ApiFixture, line: Line) -> anyhow::Result<Self> {
        let load = Load::polls(&line.poll_paths(&fixture.keys, POLLING_USERS))?;
        Ok(Self { line, load })
    }

    async fn run(&self, fixture: &ApiFixture, seconds: u32) -> anyhow::Result<LoadResult> {
        self.line.admit_one(fixture).await?;
        self.load.run(&fixture.pod, CONNECTIONS, seconds).await
    }
}

pub(super) async fn measure(
    fixture: &ApiFixture,
    options: &Options,
) -> anyhow::Result<Vec<Measurement>> {
    let long = PolledLine::new(fixture, Line::fill_moving(fixture, "long", options.users).await?)?;
    let short = PolledLine::new(fixture, Line::fill_moving(fixture, "short", SHORT_LINE).await?)?;
    let drawn = PolledLine::new(fixture, Line::fill_drawn(fixture, "drawn", options.users).await?)?;
    let commands = commands_per_poll(fixture, &long.load).await?;
    let mut rounds: [Rounds; 4] = Default::default();
    for round in 0..=options.rounds {
        for load in rotation(round, rounds.len()) {
            let result = match load {
                0 => long.run(fixture, options.seconds).await?,
                1 => short.run(fixture, options.seconds).await?,
                2 => drawn.run(fixture, options.seconds).await?,
                _ => long.load.run(&fixture.baseline, CONNECTIONS, options.seconds).await?,
            };
            if round > 0 {
                rounds[load].0.push(result);
            }
        }
        progress(&format!("polls: round {round} of {}", options.rounds));
    }
    let memory = fixture.pod.memory_bytes()? / 1e6;
    let size = long.line.check_eta(fixture, &fixture.pod).await?;
    drawn.line.check_eta(fixture, &fixture.pod).await?;
    let baseline_size = long.line.check_eta(fixture, &fixture.baseline).await?;
    fixture.remove(long.line).await?;
    fixture.remove(short.line).await?;
    fixture.remove(drawn.line).await?;
    let [long, short, drawn, baseline] = &rounds;
    let (long_rate, short_rate) = (long.per_second(), short.per_second());
    Ok(vec![
        Measurement::ratio("poll vs baseline handler", long_rate / baseline.per_second(), 0.90)
            .with_detail(format!(
                "{} waiting; {}; {size} B of JSON of {baseline_size} B",
                options.users,
                long.compared_with(baseline)
            ))
            .with_rounds(long.ratios(baseline)),
        Measurement::ratio(
            "poll of a drawn line vs baseline handler",
            drawn.per_second() / baseline.per_second(),
            0.85,
        )
        .with_detail(format!("{} waiting; {}", options.users, drawn.compared_with(baseline)))
        .with_rounds(drawn.ratios(baseline)),
        Measurement::ratio("poll, long line vs 1,000 waiting", long_rate / short_rate, 0.90)
            .with_detail(format!("{long_rate:.0}/s of {short_rate:.0}/s"))
            .with_rounds(long.ratios(short)),
        Measurement::new("Redis commands per poll", commands, "", Target::AtMost(0.001))
            .with_detail("one line; commands called by scripts included"),
        Measurement::new("memory of the pod", memory, "MB", Target::AtMost(100.0))
            .with_detail(format!("{} waiting, after all polls", options.users)),
    ])
}

/// Commands that Redis processes while users poll one line: refreshes and seen marks. Runs before the rounds, because a pod
/// keeps refreshing a line for some time after its last poll.
async fn commands_per_poll(fixture: &ApiFixture, load: &Load) -> anyhow::Result<f64> {
    load.run(&fixture.pod, CONNECTIONS, 1).await?;
    let before = fixture.redis_info("stats", "total_commands_processed").await?;
    let result = load.run(&fixture.pod, CONNECTIONS, COMMAND_SECONDS).await?;
    let after = fixture.redis_info("stats", "total_commands_processed").await?;
    Ok((after - before) / result.requests)
}
