//! Polls: beside a handler that does nothing, of a long line beside a short one, and what Redis
//! hears of them.

use super::arena::Arena;
use super::wrk::{Loads, Polls};
use super::{Options, THOUSAND};
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
    let (mut at_big, mut at_small, mut at_bare) =
        (Loads::default(), Loads::default(), Loads::default());
    for round in 0..=options.rounds {
        let long = big.at(&arena.pod, options.seconds).await?;
        let bare = big.at(&arena.bare, options.seconds).await?;
        let short = small.at(&arena.pod, options.seconds).await?;
        progress(&format!(
            "polls: {:.0}/s, bare {:.0}/s, of a short line {:.0}/s",
            long.per_second, bare.per_second, short.per_second
        ));
        if round > 0 {
            at_big.push(long);
            at_bare.push(bare);
            at_small.push(short);
        }
    }
    let (long, bare, short) = (at_big.per_second(), at_bare.per_second(), at_small.per_second());
    let (cpu, bare_cpu) = (at_big.cpu(), at_bare.cpu());
    let memory = arena.pod.memory()? / 1e6;
    let people = options.people;
    Ok(vec![
        Figure::ratio(&format!("poll, {people} waiting, vs bare handler"), long / bare, 0.90)
            .with(format!("{long:.0}/s of {bare:.0}/s; CPU {cpu:.1} µs of {bare_cpu:.1} µs")),
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
