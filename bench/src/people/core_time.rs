//! What a script takes of Redis's core. Redis itself times scripts by the clock, and on a machine that
//! others use, too, a script may have to wait for its core in the middle.

use anyhow::{Context, ensure};
use daegi_domain::Policy;
use daegi_store::{CHUNK, Store};

use super::Options;
use super::arena::{Arena, LATER, now};
use crate::duel::median;
use crate::figure::{Figure, Goal};

/// All are let in, a call after the other.
const PEOPLE: u32 = 200_000;
/// No script may take longer, in milliseconds.
const TOO_LONG: f64 = 5.0;

pub(super) async fn of_admissions(arena: &Arena, options: &Options) -> anyhow::Result<Figure> {
    let (mut longest, mut all) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let took = of_one_line(arena).await?;
        longest.push(took.iter().copied().fold(0.0, f64::max));
        all.extend(took);
    }
    let name = "… the longest of a round, in time on Redis's core";
    Ok(Figure::new(name, median(longest.clone()), "ms", Goal::Most(TOO_LONG))
        .with(format!(
            "{} calls for {CHUNK} people each, {:.2} ms in the middle",
            all.len(),
            median(all)
        ))
        .over(longest))
}

/// What each of the calls took that let everybody in, in milliseconds.
async fn of_one_line(arena: &Arena) -> anyhow::Result<Vec<f64>> {
    let line = arena.line("gate", PEOPLE as usize).await?;
    arena.set_policy(&line.item, &Policy::default()).await?;
    line.was_seen(arena, now() + LATER).await?;
    let (epoch, round) = (arena.store.begin_term(0).await?, now() + LATER);
    let (mut left, mut took) = (PEOPLE, Vec::new());
    while left > 0 {
        let before = on_core(arena)?;
        let done = arena.store.admit(epoch, &line.item, left, 0, u64::MAX, round).await?;
        ensure!(done.admitted > 0, "nobody was let in: {done:?}");
        took.push(on_core(arena)? - before);
        left -= done.admitted;
    }
    arena.empty_outbox().await?;
    arena.store.purge(&line.item).await?;
    Ok(took)
}

/// How long Redis's main thread has been on a core, in milliseconds.
fn on_core(arena: &Arena) -> anyhow::Result<f64> {
    let pid = arena.redis.pid().context("Redis is gone")?;
    let times = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat"))?;
    let nanoseconds: f64 = times.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e6)
}
