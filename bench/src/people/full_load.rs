//! A leader's scripts at full load, in turns with work that is always the same.
//!
//! Both are in the same Redis at the same time, so whatever the machine does is done to both. Scripts of
//! a leader that are slow more often than that are slow by themselves.

use anyhow::ensure;

use super::Options;
use super::admissions::Leader;
use super::arena::Arena;
use super::gate::CALLS;
use super::slow_log::{self, Slow, longest};
use super::treadmill::{Treadmill, by_chance};
use crate::figure::{Figure, Goal};
use crate::report::progress;

pub(super) async fn in_turns(
    arena: &Arena,
    leader: &Leader<'_>,
    options: &Options,
) -> anyhow::Result<Figure> {
    let mut connection = arena.redis.connection().await?;
    let mut treadmill = Treadmill::set_up(arena).await?;
    let typical = treadmill.typical(arena).await?;
    treadmill.calls = 0;
    let (mut scripts, mut steps): (Vec<Slow>, Vec<Slow>) = (Vec::new(), Vec::new());
    for round in 0..options.rounds {
        let line = leader.line(&format!("turn-{round}")).await?;
        slow_log::watch(&mut connection).await?;
        tokio::select! {
            ended = walk(&mut treadmill) => ended?,
            let_in = leader.let_in() => drop(let_in?),
        }
        let slow = slow_log::read(&mut connection).await?;
        let (walked, led): (Vec<_>, _) =
            slow.into_iter().partition(|slow| slow.runs(&treadmill.script));
        progress(&format!("in turns: {} slow scripts, {} slow steps", led.len(), walked.len()));
        scripts.extend(led);
        steps.extend(walked);
        arena.remove(line).await?;
    }
    let (calls, walked) = (CALLS * options.rounds, treadmill.calls as usize);
    ensure!(walked > calls / 2, "{walked} steps are too few beside {calls} calls");
    treadmill.remove().await?;
    let goal = by_chance(steps.len(), calls as f64 / (calls + walked) as f64);
    Ok(Figure::new("… over 5 ms, beside steady work", scripts.len() as f64, "", Goal::Most(goal as f64))
        .with(format!(
            "of {calls} by the clock{}; in turns with them, in the same Redis, {walked} scripts of \
             {typical:.2} ms that always do the same, of which {} took over 5 ms{}: not more often, but for \
             chance",
            longest(&scripts),
            steps.len(),
            longest(&steps),
        )))
}

/// Goes on until nobody waits for it any more.
async fn walk(treadmill: &mut Treadmill) -> anyhow::Result<()> {
    loop {
        treadmill.step().await?;
    }
}
