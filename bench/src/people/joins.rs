//! Joins: beside a handler that does nothing, into a long line beside a short one, and what they
//! cost Redis.

use super::arena::Arena;
use super::wrk::{Joins, Loads};
use super::{Options, THOUSAND, redis_side};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

pub(super) async fn compare(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    // Another pod's polls are over; nothing but joins reaches Redis now.
    let big = arena.line("crowd", options.people).await?;
    let (mut at_big, mut at_small, mut at_bare, mut cpu) =
        (Loads::default(), Loads::default(), Loads::default(), Vec::new());
    for round in 0..=options.rounds {
        let joins = Joins::at_door(&big.door(), &format!("b{round}"))?;
        let before = arena.redis_cpu().await?;
        let long = joins.at(&arena.pod, options.seconds).await?;
        let used = (arena.redis_cpu().await? - before) * 1e6 / long.requests;
        let bare = joins.at(&arena.bare, options.seconds).await?;
        let small = arena.line(&format!("short-{round}"), THOUSAND).await?;
        let short = Joins::at_door(&small.door(), "s")?;
        // Short also in time, or the line would not stay so.
        let short = short.at(&arena.pod, 1).await?;
        progress(&format!(
            "joins: {:.0}/s, bare {:.0}/s, into a short line {:.0}/s, redis {used:.2} µs",
            long.per_second, bare.per_second, short.per_second
        ));
        if round > 0 {
            at_big.push(long);
            at_bare.push(bare);
            at_small.push(short);
            cpu.push(used);
        }
    }
    let (long, bare, short) = (at_big.per_second(), at_bare.per_second(), at_small.per_second());
    let (pod_cpu, bare_cpu) = (at_big.cpu(), at_bare.cpu());
    let (together, alone) = (median(cpu), redis_side::cpu_of_lone_joins(arena).await?);
    let bare_writes = redis_side::cpu_of_bare_writes(arena).await?;
    Ok(vec![
        Figure::ratio("join, distinct people, vs bare handler", long / bare, 0.60)
            .with(format!("{long:.0}/s of {bare:.0}/s; CPU {pod_cpu:.1} µs of {bare_cpu:.1} µs")),
        Figure::ratio("join, long line vs 1,000 waiting", long / short, 0.90)
            .with(format!("{long:.0}/s, {short:.0}/s")),
        Figure::new("Redis CPU per join at full load", together, "µs", Goal::Most(3.0)),
        Figure::new("… of a script per join", together / alone, "", Goal::Most(0.3))
            .with(format!("{together:.1} µs of {alone:.1} µs; this or the row above")),
        Figure::new("… of a bare ZADD per person", together / bare_writes, "", Goal::None)
            .with(format!("{bare_writes:.1} µs by redis-benchmark")),
    ])
}
