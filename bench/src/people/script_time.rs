//! How long the scripts of a leader take, by Redis's own clock.
//!
//! A single call says little on a machine that others use, too (see [`super::standstill`]). But the
//! calls that let a line in and empty the outbox are the same in every round, so what a call itself
//! takes comes back in each, as when a table of Redis doubles; its median over the rounds is judged.

use anyhow::Context;
use daegi_store::CHUNK;
use redis::aio::MultiplexedConnection;

use super::arena::Arena;
use super::gate::{CALLS, Gate};
use super::slow_log::TOO_LONG;
use super::{Options, script_count};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

pub(super) async fn of_a_leader(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let took = of_one_line(arena).await?;
        progress(&format!("scripts: {:.1} ms at most", most(&took)));
        rounds.push(took);
    }
    let medians = medians(&rounds);
    let typical = median(medians[..CALLS].to_vec());
    let mut figures = vec![call_by_call(&rounds, &medians, typical)];
    figures.extend(script_count::longest(typical).await?);
    Ok(figures)
}

/// What each call takes that comes back in every round.
fn medians(rounds: &[Vec<f64>]) -> Vec<f64> {
    let calls = rounds.iter().map(Vec::len).min().unwrap_or_default();
    let of_call = |call| median(rounds.iter().map(|took| took[call]).collect());
    (0..calls).map(of_call).collect()
}

fn call_by_call(rounds: &[Vec<f64>], medians: &[f64], typical: f64) -> Figure {
    Figure::new("longest script of a leader", most(medians), "ms", Goal::Most(TOO_LONG))
        .with(format!(
            "each of {} calls by its median over the rounds; {typical:.2} ms for {CHUNK} people; \
             single rounds by their longest call",
            medians.len()
        ))
        .over(rounds.iter().map(|took| most(took)).collect())
}

/// What each of the calls took that let everybody in and told of it, in milliseconds.
async fn of_one_line(arena: &Arena) -> anyhow::Result<Vec<f64>> {
    let gate = Gate::fill(&arena.store).await?;
    let mut took = Vec::new();
    let mut clock = Clock::start(arena).await?;
    gate.open(async || {
        took.push(clock.lap().await?);
        Ok(())
    })
    .await?;
    Ok(took)
}

/// How long Redis is at scripts and at reading the outbox.
pub(super) struct Clock {
    connection: MultiplexedConnection,
    spent: f64,
}

impl Clock {
    pub(super) async fn start(arena: &Arena) -> anyhow::Result<Self> {
        let mut clock = Self { connection: arena.redis.connection().await?, spent: 0.0 };
        clock.lap().await?;
        Ok(clock)
    }

    /// How long since the last time, in milliseconds.
    pub(super) async fn lap(&mut self) -> anyhow::Result<f64> {
        let mut info = redis::cmd("INFO");
        let text: String = info.arg("commandstats").query_async(&mut self.connection).await?;
        let spent: f64 = ["cmdstat_evalsha:", "cmdstat_xrange:"]
            .into_iter()
            .filter_map(|command| text.lines().find_map(|line| line.strip_prefix(command)))
            .map(|line| {
                let spent = line.split(',').find_map(|part| part.strip_prefix("usec="));
                Ok(spent.context("INFO has no time of a command")?.parse::<f64>()? / 1e3)
            })
            .sum::<anyhow::Result<_>>()?;
        Ok(spent - std::mem::replace(&mut self.spent, spent))
    }
}

pub(super) fn most(of: &[f64]) -> f64 {
    of.iter().copied().fold(0.0, f64::max)
}
