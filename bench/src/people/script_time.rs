//! How long the scripts of a leader take, by Redis's own clock.
//!
//! A single call says little on a machine that others use, too (see [`super::treadmill`]). But the
//! calls that let a line in and empty the outbox are the same in every round, so what a call itself
//! takes comes back in each, as when a table of Redis doubles; its median over the rounds is judged.

use anyhow::Context;
use daegi_store::CHUNK;
use redis::aio::MultiplexedConnection;

use super::admissions::{TOO_LONG, longest};
use super::arena::Arena;
use super::gate::{CALLS, Gate};
use super::treadmill::{Treadmill, by_chance};
use super::{Options, script_count};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

pub(super) async fn of_a_leader(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let (mut rounds, mut treadmill) = (Vec::new(), Treadmill::new());
    for _ in 0..options.rounds {
        let took = of_one_line(arena, &mut treadmill).await?;
        progress(&format!("scripts: {:.1} ms at most", most(&took)));
        rounds.push(took);
    }
    let medians = medians(&rounds);
    let typical = median(medians[..CALLS].to_vec());
    let mut figures = vec![call_by_call(&rounds, &medians, typical)];
    figures.extend(script_count::longest(typical).await?);
    figures.push(against_the_machine(&rounds.concat(), &treadmill));
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

/// Single calls that took too long. There may be none, but for what the machine does to everybody.
fn against_the_machine(took: &[f64], treadmill: &Treadmill) -> Figure {
    let too_long = |took: &[f64]| -> Vec<f64> {
        took.iter().copied().filter(|took| *took > TOO_LONG).collect()
    };
    let (slow, steps) = (too_long(took), too_long(treadmill.took()));
    let goal = Goal::Most(by_chance(steps.len()) as f64);
    Figure::new("… single calls over 5 ms", slow.len() as f64, "", goal).with(format!(
        "of {}{}; in turns with them as many steps of {:.2} ms that are always the same, of which {} \
         took over 5 ms{}: not more often, but for chance",
        took.len(),
        longest(slow),
        treadmill.typical(),
        steps.len(),
        longest(steps),
    ))
}

/// What each of the calls took that let everybody in and told of it, in milliseconds. They take turns
/// with the treadmill.
async fn of_one_line(arena: &Arena, treadmill: &mut Treadmill) -> anyhow::Result<Vec<f64>> {
    let gate = Gate::fill(&arena.store).await?;
    let mut took = Vec::new();
    let mut clock = Clock::start(arena).await?;
    gate.open(async || {
        took.push(clock.lap().await?);
        treadmill.step();
        Ok(())
    })
    .await?;
    Ok(took)
}

/// How long Redis is at what a leader asks of it.
struct Clock {
    connection: MultiplexedConnection,
    spent: f64,
}

impl Clock {
    async fn start(arena: &Arena) -> anyhow::Result<Self> {
        let mut clock = Self { connection: arena.redis.connection().await?, spent: 0.0 };
        clock.lap().await?;
        Ok(clock)
    }

    /// How long since the last time, in milliseconds.
    async fn lap(&mut self) -> anyhow::Result<f64> {
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
