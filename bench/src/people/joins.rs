//! Joins: beside a handler that does nothing, into a long line beside a short one, and what they
//! cost Redis.

use super::arena::Arena;
use super::wrk::Joins;
use super::{Options, THOUSAND, redis_side};
use crate::duel::median;
use crate::figure::{Figure, Goal};
use crate::report::progress;

pub(super) async fn compare(arena: &Arena, options: &Options) -> anyhow::Result<Vec<Figure>> {
    // Another pod's polls are over; nothing but joins reaches Redis now.
    let big = arena.line("crowd", options.people).await?;
    let (mut at_big, mut at_small, mut at_bare, mut cpu) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..=options.rounds {
        let joins = Joins::at_door(&big.door(), &format!("b{round}"))?;
        let before = arena.redis_cpu().await?;
        let long = joins.at(&arena.pod, options.seconds).await?;
        let used = (arena.redis_cpu().await? - before) * 1e6 / long.requests;
        let bare = joins.at(&arena.bare, options.seconds).await?.per_second;
        let small = arena.line(&format!("short-{round}"), THOUSAND).await?;
        let short = Joins::at_door(&small.door(), "s")?;
        // Short also in time, or the line would not stay so.
        let short = short.at(&arena.pod, 1).await?.per_second;
        let long = long.per_second;
        progress(&format!(
            "joins: {long:.0}/s, bare {bare:.0}/s, into a short line {short:.0}/s, redis {used:.2} µs"
        ));
        if round > 0 {
            at_big.push(long);
            at_bare.push(bare);
            at_small.push(short);
            cpu.push(used);
        }
    }
    let (long, bare, short) = (median(at_big), median(at_bare), median(at_small));
    let (together, alone) = (median(cpu), redis_side::cpu_of_lone_joins(arena).await?);
    let bare_writes = redis_side::cpu_of_bare_writes(arena).await?;
    Ok(vec![
        Figure::ratio("join, distinct people, vs bare handler", long / bare, 0.60)
            .with(format!("{long:.0}/s of {bare:.0}/s")),
        Figure::ratio("join, long line vs 1,000 waiting", long / short, 0.90)
            .with(format!("{long:.0}/s, {short:.0}/s")),
        Figure::new("Redis CPU per join at full load", together, "µs", Goal::Most(3.0)),
        Figure::new("… of a script per join", together / alone, "", Goal::Most(0.3))
            .with(format!("{together:.1} µs of {alone:.1} µs; this or the row above")),
        Figure::new("… of a bare ZADD per person", together / bare_writes, "", Goal::None)
            .with(format!("{bare_writes:.1} µs by redis-benchmark")),
    ])
}
