//! Polls: beside a handler that does nothing, of a long line beside a short one, and what Redis
//! hears of them.

use super::arena::Arena;
use super::wrk::Polls;
use super::{Options, THOUSAND};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// How many different people ask. `wrk` keeps all their requests in memory.
const ASKERS: usize = 200_000;
/// Enough seconds for all that happens regularly.
const LONG: u32 = 6;

pub(super) async fn compare(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let big = arena.line("big", options.people).await?;
    let small = arena.line("small", THOUSAND).await?;
    let big = Polls::of(&big.addresses(&arena.keys, ASKERS))?;
    let small = Polls::of(&small.addresses(&arena.keys, ASKERS))?;
    let commands = commands_per_poll(arena, &big).await?;
    let (mut at_big, mut at_small, mut at_bare) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=options.rounds {
        let long = big.at(&arena.pod, options.seconds).await?.per_second;
        let bare = big.at(&arena.bare, options.seconds).await?.per_second;
        let short = small.at(&arena.pod, options.seconds).await?.per_second;
        progress(&format!("polls: {long:.0}/s, bare {bare:.0}/s, of a short line {short:.0}/s"));
        if round > 0 {
            at_big.push(long);
            at_bare.push(bare);
            at_small.push(short);
        }
    }
    let (long, bare, short) = (median(at_big), median(at_bare), median(at_small));
    let memory = arena.pod.memory()? / 1e6;
    let people = options.people;
    Ok(vec![
        Figure::ratio(&format!("poll, {people} waiting, vs bare handler"), long / bare, 0.90)
            .with(format!("{long:.0}/s of {bare:.0}/s")),
        Figure::ratio("poll, long line vs 1,000 waiting", long / short, 0.90)
            .with(format!("{long:.0}/s, {short:.0}/s")),
        Figure::new("Redis commands per poll", commands, "", Goal::Most(0.001))
            .with("one line; those that scripts call are counted, too"),
        Figure::new("memory of the pod", memory, "MB", Goal::Most(100.0))
            .with(format!("{people} waiting, after all polls")),
    ])
}

/// Everything Redis did while people asked about one line, which is to look at it and to note who
/// was seen. Comes first: a pod keeps looking at a line for a while after the last poll.
async fn commands_per_poll(arena: &Arena, polls: &Polls) -> anyhow::Result<f64> {
    polls.at(&arena.pod, 1).await?;
    let before = arena.info("stats", "total_commands_processed").await?;
    let load = polls.at(&arena.pod, LONG).await?;
    let after = arena.info("stats", "total_commands_processed").await?;
    Ok((after - before) / load.requests)
}
