//! Polls: beside a handler that does nothing, of a long line beside shorter ones, and what Redis
//! hears of them. The lines are open and have moved lately.

use super::arena::Arena;
use super::moving::Moving;
use super::wrk::{Load, Loads, Polls};
use super::{BARE, CONTESTANTS, HUNDRED_THOUSAND, Options, THOUSAND, turns};
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// How many different people ask. `wrk` keeps all their requests in memory.
const ASKERS: usize = 200_000;
/// Enough seconds for all that happens regularly.
const LONG: u32 = 6;

/// A line, and those who ask after it.
struct Asked {
    moving: Moving,
    polls: Polls,
    loads: Loads,
}

impl Asked {
    async fn fill(arena: &Arena, name: &str, people: usize) -> anyhow::Result<Self> {
        let moving = Moving::fill(arena, name, people).await?;
        let polls = Polls::of(&moving.line.addresses(&arena.keys, ASKERS))?;
        Ok(Self { moving, polls, loads: Loads::default() })
    }

    /// A round of load. The line moves before it and stands while it is asked after.
    async fn round(&mut self, arena: &Arena, seconds: u32) -> anyhow::Result<Load> {
        self.moving.step(arena).await?;
        self.polls.at(&arena.pod, seconds).await
    }
}

pub(super) async fn compare(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    let mut lines = [
        Asked::fill(arena, "big", options.people).await?,
        Asked::fill(arena, "middle", HUNDRED_THOUSAND).await?,
        Asked::fill(arena, "small", THOUSAND).await?,
    ];
    let mut at_bare = Loads::default();
    let commands = commands_per_poll(arena, &lines[0].polls).await?;
    for round in 0..=options.rounds {
        let mut loads = [Load::default(); CONTESTANTS];
        for who in turns(round) {
            loads[who] = if who == BARE {
                lines[0].polls.at(&arena.bare, options.seconds).await?
            } else {
                lines[who].round(arena, options.seconds).await?
            };
        }
        let [long, medium, short, bare] = loads.map(|load| load.per_second);
        progress(&format!(
            "polls: {long:.0}/s, bare {bare:.0}/s, of a line of {HUNDRED_THOUSAND} {medium:.0}/s, of a \
             short one {short:.0}/s"
        ));
        if round > 0 {
            for (line, load) in lines.iter_mut().zip(loads) {
                line.loads.push(load);
            }
            at_bare.push(loads[BARE]);
        }
    }
    let memory = arena.pod.memory()? / 1e6;
    let size = lines[0].moving.told(arena, &arena.pod).await?;
    let bare_size = lines[0].moving.told(arena, &arena.bare).await?;
    let [vs_bare, vs_short] = figures(lines.each_ref().map(|line| &line.loads), &at_bare, options);
    for line in lines {
        line.moving.remove(arena).await?;
    }
    let people = options.people;
    Ok(vec![
        vs_bare.and(&format!("{size} B of JSON, {bare_size} B")),
        vs_short,
        Figure::new("Redis commands per poll", commands, "", Goal::Most(0.001))
            .with("one line; those that scripts call are counted, too"),
        Figure::new("memory of the pod", memory, "MB", Goal::Most(100.0))
            .with(format!("{people} waiting, after all polls")),
    ])
}

fn figures([big, middle, small]: [&Loads; 3], bare: &Loads, options: &Options) -> [Figure; 2] {
    let (long, medium, short) = (big.per_second(), middle.per_second(), small.per_second());
    let (at_most, people) = (bare.per_second(), options.people);
    let (cpu, bare_cpu) = (big.cpu(), bare.cpu());
    [
        Figure::ratio(&format!("poll, {people} waiting, vs bare handler"), long / at_most, 0.90)
            .with(format!("{long:.0}/s of {at_most:.0}/s; CPU {cpu:.1} µs of {bare_cpu:.1} µs"))
            .over(big.ratios(bare)),
        Figure::ratio("poll, long line vs 1,000 waiting", long / short, 0.90)
            .with(format!("{long:.0}/s, {medium:.0}/s (100,000), {short:.0}/s"))
            .over(big.ratios(small)),
    ]
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
