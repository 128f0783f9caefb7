//! Joins: beside a handler that does nothing, into a long line beside shorter ones, and what they
//! cost Redis.

use super::arena::Arena;
use super::wrk::{Joins, Load, Loads};
use super::{HUNDRED_THOUSAND, Options, THOUSAND, redis_side};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// Redis may take so many microseconds per join…
const FEW: f64 = 3.0;
/// …or this part of what a script per join takes.
const PART: f64 = 0.3;
/// How many bare writes go together where they do.
const PIPELINE: usize = 64;

/// What a person costs Redis in microseconds, by the round.
#[derive(Debug, Default)]
struct Costs {
    together: Vec<f64>,
    alone: Vec<f64>,
    bare: Vec<f64>,
    bare_alone: Vec<f64>,
}

pub(super) async fn compare(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    // Another pod's polls are over; nothing but joins reaches Redis now.
    let big = arena.line("crowd", options.people).await?;
    let (mut at_big, mut at_middle, mut at_small, mut at_bare) =
        (Loads::default(), Loads::default(), Loads::default(), Loads::default());
    let mut costs = Costs::default();
    for round in 0..=options.rounds {
        let joins = Joins::at_door(&big.door(), &format!("b{round}"))?;
        let before = arena.redis_cpu().await?;
        let long = joins.at(&arena.pod, options.seconds).await?;
        let used = (arena.redis_cpu().await? - before) * 1e6 / long.requests;
        let bare = joins.at(&arena.bare, options.seconds).await?;
        // A second of joins later it is as much longer as it is shorter now.
        let medium = newly_filled(arena, "medium", round, HUNDRED_THOUSAND * 3 / 4).await?;
        let short = newly_filled(arena, "short", round, THOUSAND).await?;
        let alone = redis_side::cpu_of_lone_joins(arena, round).await?;
        let written = redis_side::cpu_of_bare_writes(arena, PIPELINE).await?;
        let written_alone = redis_side::cpu_of_bare_writes(arena, 1).await?;
        progress(&format!(
            "joins: {:.0}/s, bare {:.0}/s, into a line of {HUNDRED_THOUSAND} {:.0}/s, into a short one \
             {:.0}/s; redis {used:.2} µs, {alone:.1} µs by a script each",
            long.per_second, bare.per_second, medium.per_second, short.per_second
        ));
        if round > 0 {
            at_big.push(long);
            at_bare.push(bare);
            at_middle.push(medium);
            at_small.push(short);
            costs.together.push(used);
            costs.alone.push(alone);
            costs.bare.push(written);
            costs.bare_alone.push(written_alone);
        }
    }
    let (long, medium, short) =
        (at_big.per_second(), at_middle.per_second(), at_small.per_second());
    let (bare, pod_cpu, bare_cpu) = (at_bare.per_second(), at_big.cpu(), at_bare.cpu());
    let mut figures = vec![
        Figure::ratio("join, distinct people, vs bare handler", long / bare, 0.60)
            .with(format!("{long:.0}/s of {bare:.0}/s; CPU {pod_cpu:.1} µs of {bare_cpu:.1} µs"))
            .over(at_big.ratios(&at_bare)),
        Figure::ratio("join, long line vs 1,000 waiting", long / short, 0.90)
            .with(format!("{long:.0}/s, {medium:.0}/s (about 100,000), {short:.0}/s"))
            .over(at_big.ratios(&at_small)),
    ];
    figures.extend(costs.figures());
    Ok(figures)
}

/// Joins of one second into a line that had so many people before. Not longer, or it would not stay
/// what it is.
async fn newly_filled(
    arena: &Arena,
    name: &str,
    round: usize,
    people: usize,
) -> anyhow::Result<Load> {
    let line = arena.line(&format!("{name}-{round}"), people).await?;
    Joins::at_door(&line.door(), "s")?.at(&arena.pod, 1).await
}

impl Costs {
    fn figures(self) -> [Figure; 2] {
        let ratios = |of: &[f64]| -> Vec<f64> {
            self.together.iter().zip(of).map(|(mine, theirs)| mine / theirs).collect()
        };
        let (of_alone, of_bare) = (ratios(&self.alone), ratios(&self.bare));
        let single = self.together.clone();
        let [together, alone, bare, bare_alone] =
            [self.together, self.alone, self.bare, self.bare_alone].map(median);
        // Either is enough; the one that is further from its goal is not told.
        let judged = if together <= FEW {
            Figure::new("Redis CPU per join at full load", together, "µs", Goal::Most(FEW))
                .over(single)
        } else {
            let name = "Redis CPU per join, of a script per join";
            Figure::new(name, together / alone, "", Goal::Most(PART)).over(of_alone)
        };
        [
            judged.with(format!(
                "{together:.1} µs of {alone:.1} µs; asked for is {PART} of it or {FEW} µs"
            )),
            Figure::new("… of a bare ZADD per person", together / bare, "", Goal::None)
                .with(format!(
                    "{bare:.1} µs by redis-benchmark, {PIPELINE} in a pipeline; {bare_alone:.1} µs one by one"
                ))
                .over(of_bare),
        ]
    }
}
