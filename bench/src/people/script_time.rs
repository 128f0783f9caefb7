//! How long the scripts of a leader take, by Redis's own clock.
//!
//! A single call says little on a machine that others use, too (see [`super::treadmill`]). But the
//! calls that let a line in and empty the outbox are the same in every round, so what a call itself
//! takes comes back in each, as when a table of Redis doubles; its median over the rounds is judged.

use anyhow::{Context, ensure};
use daegi_domain::Policy;
use daegi_store::{CHUNK, Store};
use redis::aio::MultiplexedConnection;

use super::Options;
use super::admissions::{TOO_LONG, longest};
use super::arena::{Arena, LATER, now};
use super::treadmill::{Treadmill, by_chance};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// All are let in, a call after the other.
const PEOPLE: u32 = 200_000;
/// So many batches of the outbox are read at once, as by the relay.
const BATCHES: u32 = 10;

pub(super) async fn of_a_leader(arena: &Arena, options: &Options) -> anyhow::Result<[Figure; 2]> {
    let (mut rounds, mut treadmill) = (Vec::new(), Treadmill::new());
    for _ in 0..options.rounds {
        let took = of_one_line(arena, &mut treadmill).await?;
        progress(&format!("scripts: {:.1} ms at most", most(&took)));
        rounds.push(took);
    }
    Ok([call_by_call(&rounds), against_the_machine(&rounds.concat(), &treadmill)])
}

/// What a call takes that comes back in every round.
fn call_by_call(rounds: &[Vec<f64>]) -> Figure {
    let calls = rounds.iter().map(Vec::len).min().unwrap_or_default();
    let of_call = |call| median(rounds.iter().map(|took| took[call]).collect());
    let medians: Vec<f64> = (0..calls).map(of_call).collect();
    let admissions = medians[..(PEOPLE / CHUNK) as usize].to_vec();
    Figure::new("longest script of a leader", most(&medians), "ms", Goal::Most(TOO_LONG))
        .with(format!(
            "each of {calls} calls by its median over the rounds; {:.2} ms for {CHUNK} people; \
             single rounds by their longest call",
            median(admissions)
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
    let line = arena.line("gate", PEOPLE as usize).await?;
    arena.set_policy(&line.item, &Policy::default()).await?;
    line.was_seen(arena, now() + LATER).await?;
    let (epoch, round) = (arena.store.begin_term(0).await?, now() + LATER);
    let (mut left, mut took) = (PEOPLE, Vec::new());
    let mut clock = Clock::start(arena).await?;
    while left > 0 {
        let done = arena.store.admit(epoch, &line.item, left, 0, u64::MAX, round).await?;
        ensure!(done.admitted == left.min(CHUNK), "not everybody was let in: {done:?}");
        took.push(clock.lap().await?);
        treadmill.step();
        left -= done.admitted;
    }
    for partition in 0..arena.store.partitions() {
        loop {
            let batches = arena.store.outbox_read(partition, None, BATCHES).await?;
            took.push(clock.lap().await?);
            treadmill.step();
            if batches.is_empty() {
                break;
            }
            let ids: Vec<_> = batches.into_iter().map(|batch| batch.id).collect();
            arena.store.outbox_ack(partition, &ids).await?;
            took.push(clock.lap().await?);
            treadmill.step();
        }
    }
    arena.store.purge(&line.item).await?;
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

fn most(of: &[f64]) -> f64 {
    of.iter().copied().fold(0.0, f64::max)
}
