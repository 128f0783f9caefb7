//! Joins: beside a handler that does nothing, into a long line beside shorter ones, and what they
//! cost Redis.

use super::arena::Arena;
use super::wrk::{Joins, Load, Loads};
use super::{BARE, CONTESTANTS, HUNDRED_THOUSAND, Options, THOUSAND, redis_side, turns};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

/// Redis may take so many microseconds per join…
const FEW: f64 = 3.0;
/// …or this part of what a script per join takes.
const PART: f64 = 0.3;
/// Joins differ more from round to round than polls do: so many times as many rounds.
const ROUNDS: usize = 2;
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
    let mut loads: [Loads; CONTESTANTS] = Default::default();
    let mut costs = Costs::default();
    for round in 0..=ROUNDS * options.rounds {
        let (each, used) = one_round(arena, options, round).await?;
        let alone = redis_side::cpu_of_lone_joins(arena, round).await?;
        let written = redis_side::cpu_of_bare_writes(arena, PIPELINE).await?;
        let written_alone = redis_side::cpu_of_bare_writes(arena, 1).await?;
        let [long, medium, short, bare] = each.map(|load| load.per_second);
        progress(&format!(
            "joins: {long:.0}/s, bare {bare:.0}/s, into a line of {HUNDRED_THOUSAND} {medium:.0}/s, \
             into a short one {short:.0}/s; redis {used:.2} µs, {alone:.1} µs by a script each"
        ));
        if round > 0 {
            for (loads, load) in loads.iter_mut().zip(each) {
                loads.push(load);
            }
            costs.together.push(used);
            costs.alone.push(alone);
            costs.bare.push(written);
            costs.bare_alone.push(written_alone);
        }
    }
    let [at_big, _, at_small, at_bare] = &loads;
    let [long, medium, short, bare] = loads.each_ref().map(Loads::per_second);
    let (pod_cpu, bare_cpu) = (at_big.cpu(), at_bare.cpu());
    let mut figures = vec![
        Figure::ratio("join, distinct people, vs bare handler", long / bare, 0.60)
            .with(format!("{long:.0}/s of {bare:.0}/s; CPU {pod_cpu:.1} µs of {bare_cpu:.1} µs"))
            .over(at_big.ratios(at_bare)),
        Figure::ratio("join, long line vs 1,000 waiting", long / short, 0.90)
            .with(format!(
                "{long:.0}/s (about {}), {medium:.0}/s (about {HUNDRED_THOUSAND}), {short:.0}/s",
                options.people
            ))
            .over(at_big.ratios(at_small)),
    ];
    figures.extend(costs.figures());
    Ok(figures)
}

/// A second of joins into each of three new lines and to the bare handler, and what the long line's
/// cost Redis. Not longer, and new each time, or a line would not stay as long as it is; the first two
/// are as much too long afterwards as they are too short before.
async fn one_round(
    arena: &Arena,
    options: &Options,
    round: usize,
) -> anyhow::Result<([Load; CONTESTANTS], f64)> {
    let lengths = [
        ("crowd", options.people - options.people / 40),
        ("medium", HUNDRED_THOUSAND * 3 / 4),
        ("short", THOUSAND),
    ];
    let mut lines = Vec::new();
    for (name, people) in lengths {
        lines.push(arena.line(&format!("{name}-{round}"), people).await?);
    }
    let (mut loads, mut used) = ([Load::default(); CONTESTANTS], 0.0);
    for who in turns(round) {
        let server = if who == BARE { &arena.bare } else { &arena.pod };
        let joins = Joins::at_door(&lines[who % BARE].door(), "s")?;
        let before = arena.redis_cpu().await?;
        loads[who] = joins.at(server, 1).await?;
        if who == 0 {
            used = (arena.redis_cpu().await? - before) * 1e6 / loads[who].requests;
        }
    }
    for line in lines {
        arena.remove(line).await?;
    }
    Ok((loads, used))
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
