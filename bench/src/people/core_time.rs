//! What a script takes of Redis's core. Redis itself times scripts by the clock, and on a machine that
//! others use, too, a script may have to wait for its core in the middle.

use daegi_domain::Policy;
use daegi_store::{CHUNK, Store};

use super::arena::{Arena, LATER, now};
use crate::figure::{Figure, Goal};

/// All are let in, a call after the other.
const PEOPLE: u32 = 200_000;
/// No script may take longer, in milliseconds.
const TOO_LONG: f64 = 5.0;

pub(super) async fn of_admissions(arena: &Arena) -> anyhow::Result<Figure> {
    let line = arena.line("gate", PEOPLE as usize).await?;
    arena.set_policy(&line.item, &Policy::default()).await?;
    line.was_seen(arena, now() + LATER).await?;
    let (epoch, round) = (arena.store.begin_term(0).await?, now() + LATER);
    let (mut left, mut took) = (PEOPLE, Vec::new());
    while left > 0 {
        let before = on_core(arena)?;
        let done = arena.store.admit(epoch, &line.item, left, 0, u64::MAX, round).await?;
        anyhow::ensure!(done.admitted > 0, "nobody was let in: {done:?}");
        took.push(on_core(arena)? - before);
        left -= done.admitted;
    }
    arena.empty_outbox().await?;
    arena.store.remove_item(&line.item).await?;
    took.sort_by(f64::total_cmp);
    let (middle, longest) = (took[took.len() / 2], took[took.len() - 1]);
    Ok(Figure::new("… the longest, in time on Redis's core", longest, "ms", Goal::Most(TOO_LONG))
        .with(format!(
            "of {} calls for {CHUNK} people each; in the middle {middle:.2} ms",
            took.len()
        )))
}

/// How long Redis's main thread has been on a core, in milliseconds.
fn on_core(arena: &Arena) -> anyhow::Result<f64> {
    let pid = arena.redis.pid().ok_or_else(|| anyhow::anyhow!("no Redis"))?;
    let times = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/schedstat"))?;
    let nanoseconds: f64 = times.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e6)
}
