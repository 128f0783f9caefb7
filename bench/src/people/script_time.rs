//! How long the scripts of a leader take, by Redis's own clock.
//!
//! A machine that others use, too, stops now and then for longer than a script takes, whatever runs at that
//! moment: a loop that only looks at the clock is stopped as well, and here it is told how often. So
//! single calls say little. But the calls that let a line in are the same in every round, so what a call
//! itself takes comes back in each, as when a table of Redis doubles; its median over the rounds is judged.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use daegi_domain::Policy;
use daegi_store::{CHUNK, Store};
use redis::aio::MultiplexedConnection;

use super::Options;
use super::arena::{Arena, LATER, now};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// All are let in, a call after the other.
const PEOPLE: u32 = 200_000;
/// No script may take longer, in milliseconds.
const TOO_LONG: f64 = 5.0;

pub(super) async fn of_admissions(arena: &Arena, options: &Options) -> anyhow::Result<[Figure; 2]> {
    let (mut rounds, mut stops) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let took = of_one_line(arena).await?;
        let all = Duration::from_secs_f64(took.iter().sum::<f64>() / 1e3);
        stops.extend(tokio::task::spawn_blocking(move || stops_within(all)).await?);
        rounds.push(took);
        progress(&format!("scripts: {:.1} ms at most", longest(rounds.iter().flatten())));
    }
    let calls = rounds.iter().map(Vec::len).min().unwrap_or_default();
    let of_call = |call| median(rounds.iter().map(|took| took[call]).collect());
    let medians: Vec<f64> = (0..calls).map(of_call).collect();
    let single = rounds.iter().map(longest).collect();
    // A script that is stopped for so long is one too long.
    let typical = median(medians.clone());
    stops.retain(|stop| *stop > TOO_LONG - typical);
    Ok([
        Figure::new("longest script of a leader", longest(&medians), "ms", Goal::Most(TOO_LONG))
            .with(format!(
                "each of {calls} calls by its median over the rounds; {typical:.2} ms in the \
                 middle; single rounds by their longest call"
            ))
            .over(single),
        Figure::new("… a loop that only looks at the clock", stops.len() as f64, "", Goal::None)
            .with(format!(
                "stopped for over {:.1} ms in as much time, at most {:.1} ms",
                TOO_LONG - typical,
                longest(&stops)
            )),
    ])
}

/// What each of the calls took that let everybody in, in milliseconds.
async fn of_one_line(arena: &Arena) -> anyhow::Result<Vec<f64>> {
    let line = arena.line("gate", PEOPLE as usize).await?;
    arena.set_policy(&line.item, &Policy::default()).await?;
    line.was_seen(arena, now() + LATER).await?;
    let (epoch, round) = (arena.store.begin_term(0).await?, now() + LATER);
    let (mut left, mut took) = (PEOPLE, Vec::new());
    let mut connection = arena.redis.connection().await?;
    let mut before = in_scripts(&mut connection).await?;
    while left > 0 {
        let done = arena.store.admit(epoch, &line.item, left, 0, u64::MAX, round).await?;
        ensure!(done.admitted == left.min(CHUNK), "not everybody was let in: {done:?}");
        let after = in_scripts(&mut connection).await?;
        took.push(after - before);
        (before, left) = (after, left - done.admitted);
    }
    arena.empty_outbox().await?;
    arena.store.purge(&line.item).await?;
    Ok(took)
}

/// How long Redis has been in scripts, in milliseconds.
async fn in_scripts(connection: &mut MultiplexedConnection) -> anyhow::Result<f64> {
    let text: String = redis::cmd("INFO").arg("commandstats").query_async(connection).await?;
    let line = text.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:"));
    let spent = line.and_then(|line| line.split(',').find_map(|part| part.strip_prefix("usec=")));
    Ok(spent.context("INFO has no scripts")?.parse::<f64>()? / 1e3)
}

/// How long a loop that does nothing was stopped each time, in milliseconds, within so much time.
fn stops_within(time: Duration) -> Vec<f64> {
    let (begin, mut last, mut stops) = (Instant::now(), Instant::now(), Vec::new());
    while begin.elapsed() < time {
        let now = Instant::now();
        let between = (now - last).as_secs_f64() * 1e3;
        if between > 1.0 {
            stops.push(between);
        }
        last = now;
    }
    stops
}

fn longest<'a>(of: impl IntoIterator<Item = &'a f64>) -> f64 {
    of.into_iter().copied().fold(0.0, f64::max)
}
